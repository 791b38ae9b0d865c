// What must be true of the block: it adds nothing of its own to chapters 02 to 07 but two sums.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#include "08_block/block.hpp"
#include "all_close.hpp"
#include "allocations.hpp"
#include "hashed_numbers.hpp"
#include "npy.hpp"

using namespace t2t;

namespace {

struct Case {
  std::string name;
  std::size_t T;
  BlockSettings settings;

  Tensor<2> x() const { return numbers(1, 4, 0, T, settings.C); }
  Tensor<2> want() const { return load_npy<2>(T2T_FIXTURES "/" + name + ".npy"); }
  RopeTable table() const { return block_rope_table(settings, T); }
  KvCache cache() const { return make_kv_cache(settings.G, T, settings.D); }
  BlockWeights weights() const {
    const std::size_t C = settings.C, F = settings.F;
    const std::size_t HD = settings.H * settings.D, GD = settings.G * settings.D;
    const auto bias = [&](std::uint32_t seed, std::size_t size) {
      return numbers(seed, 1, 0, settings.biases ? size : 0);
    };
    const auto norm = [&](std::uint32_t seed) -> NormWeights {
      return {numbers(seed, 1, 1, C),
              numbers(seed + 1, 1, 0, settings.norm == Norm::layer ? C : 0)};
    };
    BlockWeights w;
    w.attention_norm = norm(2), w.feed_forward_norm = norm(18);
    w.w_q = numbers(4, 0.5f, 0, HD, C), w.b_q = bias(8, HD);
    w.w_k = numbers(5, 0.5f, 0, GD, C), w.b_k = bias(9, GD);
    w.w_v = numbers(6, 0.5f, 0, GD, C), w.b_v = bias(10, GD);
    w.w_o = numbers(7, 0.5f, 0, C, HD), w.b_o = bias(11, C);
    if (is_gated(settings.activation)) w.feed_forward.w_gate = numbers(13, 0.5f, 0, F, C);
    w.feed_forward.w_up = numbers(14, 0.5f, 0, F, C), w.feed_forward.b_up = bias(16, F);
    w.feed_forward.w_down = numbers(15, 0.5f, 0, C, F), w.feed_forward.b_down = bias(17, C);
    return w;
  }

  // Errors of either sign: a sum of K products keeps about √K·u of its size, u being 2^-24. The
  // two norms, five products and two sums follow one another. A score's own error (a score of up to
  // 4, a sum of D) is a relative error of its weight.
  double bound(double largest) const {
    const auto& s = settings;
    const double K = 4 * std::sqrt(s.C) + 4 * std::sqrt(s.D) + std::sqrt(T) + std::sqrt(s.H * s.D) +
                     std::sqrt(s.F);
    return K * 0x1p-24 * largest;
  }
};

Case llama() { return {"llama", 37, {.C = 96, .H = 6, .G = 2, .D = 16, .F = 160}}; }
std::vector<Case> cases() {
  Case odd{"odd", 7, {.C = 25, .H = 3, .G = 1, .D = 10, .F = 33}};
  odd.settings.pairing = Pairing::halves, odd.settings.theta = 500, odd.settings.eps = 1e-2f;
  Case llama_post{"llama_post", 11, {.C = 24, .H = 4, .G = 2, .D = 6, .F = 31}};
  llama_post.settings.norm_place = NormPlace::after;
  Case gpt2{"gpt2", 19, gpt2_style(48, 4)};
  Case post{"post", 11, gpt2_style(24, 3)};
  post.settings.F = 50, post.settings.activation = Activation::relu;
  post.settings.norm_place = NormPlace::after;
  return {llama(), odd, llama_post, gpt2, post};
}

/// x in place, in chunks of at most this many tokens.
Tensor<2> in_chunks(const Case& c, std::size_t chunk) {
  const BlockWeights weights = c.weights();
  const RopeTable table = c.table();
  KvCache cache = c.cache();
  BlockScratch scratch = block_scratch(c.settings, chunk, c.T);
  Tensor<2> x = c.x();
  for (std::size_t t = 0; t < c.T; t += chunk)
    block_rows(Matrix(x).rows_from(t, std::min(chunk, c.T - t)), weights, c.settings, table, cache,
               scratch);
  CHECK(cache.length == c.T);
  return x;
}

float largest(const Tensor<2>& x) {
  float most = 0;
  for (const float value : x) most = std::max(most, std::abs(value));
  return most;
}

}  // namespace

TEST_CASE("by hand: one token sees itself, so attention passes its norm on") {
  BlockSettings settings{.C = 2, .H = 1, .G = 1, .D = 2, .F = 1};
  settings.activation = Activation::relu, settings.eps = 1e-12f;
  const Tensor<2> one = {{1, 0}, {0, 1}};
  BlockWeights weights;
  weights.attention_norm.gain = weights.feed_forward_norm.gain = {1, 1};
  weights.w_q = weights.w_k = weights.w_v = weights.w_o = one;
  weights.feed_forward.w_up = {{1, 0}};
  weights.feed_forward.w_down = {{1}, {0}};

  // (3, 4) has root mean square √12.5: the norm is (0.8485, 1.1314), and still so after the first
  // sum, which has its direction. The network passes the first channel on.
  const Tensor<2> x = {{3, 4}}, want = {{4.69705627f, 5.13137085f}};
  const RopeTable table = block_rope_table(settings, 1);
  CHECK(all_close(block(x, weights, settings, table), want, 2e-6));
  KvCache cache = make_kv_cache(1, 1, 2);
  BlockScratch scratch = block_scratch(settings, 1, 1);
  Tensor<2> y = x;
  block_rows(y, weights, settings, table, cache, scratch);
  CHECK(all_close(y, want, 2e-6));
}

TEST_CASE("both voices equal PyTorch in float64, pre- and post-norm, LLaMA's and GPT-2's style") {
  for (const Case& c : cases()) {
    CAPTURE(c.name);
    const Tensor<2> want = c.want();
    const double bound = c.bound(largest(want));
    CHECK(all_close(block(c.x(), c.weights(), c.settings, c.table()), want, bound));
    CHECK(all_close(in_chunks(c, c.T), want, bound));
  }
}

TEST_CASE("prefill, chunks of 16, 5 and 3, and decoding a token at a time all agree") {
  for (const Case& c : cases()) {
    const Tensor<2> want = c.want();
    for (const std::size_t chunk : {16, 5, 3, 1}) {
      CAPTURE(c.name);
      CAPTURE(chunk);
      CHECK(all_close(in_chunks(c, chunk), want, c.bound(largest(want))));
    }
  }
}

TEST_CASE("a token never feels those that come after it, to the last bit") {
  const Case c = llama();
  Tensor<2> x = c.x();
  const Tensor<2> before = block(x, c.weights(), c.settings, c.table());
  for (float& value : row(x, 20)) value += 1;
  const Tensor<2> after = block(x, c.weights(), c.settings, c.table());
  for (std::size_t t = 0; t < 20; ++t) CHECK(std::ranges::equal(row(before, t), row(after, t)));
  CHECK_FALSE(std::ranges::equal(row(before, 21), row(after, 21)));
}

TEST_CASE("zero weights: the identity in pre-norm, the norm alone in post-norm") {
  for (const Case& c : cases()) {
    CAPTURE(c.name);
    BlockWeights weights = c.weights();
    for (Tensor<2>* w : {&weights.w_o, &weights.feed_forward.w_down}) w->fill(0);
    for (Tensor<1>* b : {&weights.b_o, &weights.feed_forward.b_down}) b->fill(0);
    const Tensor<2> x = c.x();
    KvCache cache = c.cache();
    BlockScratch scratch = block_scratch(c.settings, c.T, c.T);
    Tensor<2> y = x;
    block_rows(y, weights, c.settings, c.table(), cache, scratch);
    const bool pre_norm = c.settings.norm_place == NormPlace::before;
    CHECK(bool(all_close(y, x, 0)) == pre_norm);
    CHECK(bool(all_close(block(x, weights, c.settings, c.table()), x, 0)) == pre_norm);
  }
}

TEST_CASE("neither a token nor a whole prompt allocates anything, in any style") {
  const std::size_t before_tensor = allocations;
  const Tensor<2> counted = empty(3, 3);
  CHECK((allocations > before_tensor) == allocations_counted);  // xtensor's storage is counted too
  for (const Case& c : cases()) {
    for (const std::size_t chunk : {std::size_t(1), c.T}) {
      CAPTURE(c.name);
      CAPTURE(chunk);
      const BlockWeights weights = c.weights();
      const RopeTable table = c.table();
      KvCache cache = c.cache();
      BlockScratch scratch = block_scratch(c.settings, chunk, c.T);
      Tensor<2> x = c.x();
      const std::size_t before = allocations;
      for (std::size_t t = 0; t < c.T; t += chunk)
        block_rows(Matrix(x).rows_from(t, chunk), weights, c.settings, table, cache, scratch);
#if !defined(__SANITIZE_THREAD__)  // there, rows.hpp starts plain threads
      CHECK(allocations - before == 0);
#endif
    }
  }
}

TEST_CASE("another attention is called for several tokens, and never for one") {
  const Case c = llama();
  std::size_t calls = 0;
  GroupedScratch own(c.T, c.T, c.settings.H, c.settings.D);
  const PrefillAttention counted = [&](ConstMatrix q, const KvCache& cache, std::size_t H,
                                       Matrix out) {
    ++calls;
    grouped_attention_rows(q, cache, H, out, own);
  };
  const BlockWeights weights = c.weights();
  const RopeTable table = c.table();
  for (const std::size_t chunk : {c.T, std::size_t(16), std::size_t(1)}) {
    CAPTURE(chunk);
    KvCache cache = c.cache();
    BlockScratch scratch = block_scratch(c.settings, chunk, c.T, counted);
    Tensor<2> x = c.x();
    calls = 0;
    for (std::size_t t = 0; t < c.T; t += chunk)
      block_rows(Matrix(x).rows_from(t, std::min(chunk, c.T - t)), weights, c.settings, table,
                 cache, scratch);
    CHECK(calls == (chunk == 1 ? 0 : (c.T + chunk - 1) / chunk));  // 37; 16, 16 and 5; 1 by 1
    CHECK(all_close(x, in_chunks(c, chunk), 0));
  }
}

TEST_CASE("a trace names every intermediate in order, and changes nothing") {
  const Case c = llama();
  KvCache cache = c.cache();
  BlockScratch scratch = block_scratch(c.settings, c.T, c.T);
  std::string names;
  std::vector<Tensor<2>> values;
  Tensor<2> x = c.x();
  block_rows(x, c.weights(), c.settings, c.table(), cache, scratch,
             [&](std::string_view name, ConstMatrix value) {
               names += std::string(name) + " ";
               values.push_back(empty(value.rows, value.cols));
               for (std::size_t t = 0; t < value.rows; ++t)
                 std::ranges::copy(value.row(t), row(values.back(), t).begin());
             });
  CHECK(names ==
        "attention_norm q k v q_turned k_turned heads attention x_plus_attention "
        "feed_forward_norm gate hidden feed_forward x_plus_feed_forward ");
  CHECK(all_close(x, in_chunks(c, c.T), 0));
  CHECK(values.size() == 14);
  if (values.size() != 14) return;
  CHECK(all_close<2>(c.x() + values[7], values[8], 0));
  CHECK(all_close<2>(values[8] + values[12], values[13], 0));
  CHECK(all_close(values[13], x, 0));
}

TEST_CASE("parameters: those of the models, and the parts sum to the whole") {
  const auto count = [](const BlockSettings& settings) {
    std::size_t sum = 0;
    for (const PartCost& part : block_costs(settings, 1, 1)) sum += part.parameters;
    return sum;
  };
  const BlockSettings small = llama_style(256, 8, 4, 682);
  CHECK(count(small) == 720896);
  CHECK(256 + 4 * count(small) + 2 * 8192 * 256 == 7078144);    // foundry-small, its own head
  CHECK(count(llama_style(4096, 32, 32, 11008)) == 202383360);  // LLaMA-2-7B's
  CHECK(count(gpt2_style(768, 12)) == 7087872);                 // GPT-2's
  Random random(1);
  for (const Case& c : cases()) {
    CHECK(parameter_count(block_weights(c.settings, random)) == count(c.settings));
    CHECK(parameter_count(c.weights()) == count(c.settings));
  }
}

TEST_CASE("FLOPs by hand: two for each number of a matrix, 4·H·D for each key seen") {
  // T = 2 tokens, the last of S = 5: they see 4 and 5 keys.
  const std::vector<PartCost> parts = block_costs({.C = 4, .H = 2, .G = 1, .D = 2, .F = 3}, 2, 5);
  CHECK(parts[1].flops == 2 * 2 * (4 + 2 + 2) * 4);  // q, k, v
  CHECK(parts[2].flops == 4 * (4 + 5) * 4);          // attention
  CHECK(parts[3].flops == 2 * 2 * 4 * 4);            // o
  CHECK(parts[5].flops == 2 * 2 * 3 * 3 * 4);        // gate, up, down
}

TEST_CASE("a bad call is refused with what was wanted and got; x and the cache stay as they were") {
  const auto refuses = [](const std::string& message, auto change) {
    CAPTURE(message);
    Case c = llama();
    BlockWeights weights = c.weights();
    RopeTable table = c.table();
    KvCache cache = c.cache();
    BlockScratch scratch = block_scratch(c.settings, 8, c.T);
    Tensor<2> x = c.x();
    for (const std::size_t t : {0, 5})  // 10 positions filled
      block_rows(Matrix(x).rows_from(t, 5), weights, c.settings, table, cache, scratch);
    Matrix chunk = Matrix(x).rows_from(10, 8);
    change(chunk, c.settings, weights, table, cache, scratch);

    const KvCache cache_before = cache;
    const Tensor<2> x_before = x;
    CHECK_THROWS_WITH_AS(block_rows(chunk, weights, c.settings, table, cache, scratch),
                         message.c_str(), std::invalid_argument);
    CHECK(all_close(x, x_before, 0));
    CHECK(cache.length == cache_before.length);
    CHECK(all_close(cache.keys, cache_before.keys, 0));
    CHECK(all_close(cache.values, cache_before.values, 0));
  };
#define CALL                                                                     \
  [[maybe_unused]] Matrix &x, [[maybe_unused]] BlockSettings &settings,          \
      [[maybe_unused]] BlockWeights &weights, [[maybe_unused]] RopeTable &table, \
      [[maybe_unused]] KvCache &cache, [[maybe_unused]] BlockScratch &scratch
  refuses("H, the query heads: wanted a multiple of G = 4, got 6", [](CALL) { settings.G = 4; });
  refuses("F, the feed-forward width: wanted at least 1, got 0", [](CALL) { settings.F = 0; });
  refuses("eps: wanted a number above 0, got 0", [](CALL) { settings.eps = 0; });
  refuses("D, the width of a head: wanted an even number for RoPE, got 15",
          [](CALL) { settings.D = 15; });
  refuses("biases: wanted none with a gated activation, got swiglu",
          [](CALL) { settings.biases = true; });
  refuses("T, the tokens of x: wanted at least 1, got 0", [](CALL) { x.rows = 0; });
  refuses("x: wanted shape [8, 96], got [8, 95]", [](CALL) { x.cols = 95; });
  refuses("w_k: wanted shape [32, 96], got [96, 96]", [](CALL) { weights.w_k = weights.w_q; });
  refuses("w_o: wanted shape [96, 96], got [96, 32]", [](CALL) { weights.w_o = empty(96, 32); });
  refuses("b_q: wanted shape [0], got [96]", [](CALL) { weights.b_q = xt::zeros<float>({96}); });
  refuses("feed_forward_norm.gain: wanted shape [96], got [0]",
          [](CALL) { weights.feed_forward_norm.gain = {}; });
  refuses("w_down: wanted shape [96, 160], got [160, 96]",
          [](CALL) { weights.feed_forward.w_down = weights.feed_forward.w_up; });
  refuses("cache.keys: wanted shape [2, 37, 16], got [3, 37, 16]",
          [](CALL) { cache = make_kv_cache(3, 37, 16); });
  refuses("cache: length 30 and T = 8 more positions, wanted at most S = 37 in all",
          [](CALL) { cache.length = 30; });
  refuses("position 17: the table ends at 16",
          [](CALL) { table = rope_table(17, rope_frequencies(16)); });
  refuses("table.cos: wanted shape [37, 8], got [37, 4]",
          [](CALL) { table = rope_table(37, rope_frequencies(8)); });
  refuses("scratch.q: wanted shape [8, 96], got [8, 48]", [](CALL) { scratch.q = empty(8, 48); });
  const std::string threads = std::to_string(block_scratch(llama().settings, 1, 1).threads);
  const std::string small = "scratch: made for T_max = 7, S = 17 and " + threads +
                            " threads, wanted T_max = 8, S = 18 and " + threads;
  refuses(small, [](CALL) { scratch = block_scratch(settings, 7, 17); });
  const std::string other_heads = "scratch: wanted one made for T = 8, S = 18, H = 6, D = 16 and " +
                                  threads + " threads or more";
  refuses(other_heads, [](CALL) { scratch.attention = GroupedScratch(1, 18, 6, 16); });
}

TEST_CASE("settings that no block can have are refused when weights or scratch are made") {
  Random random(1);
  CHECK_THROWS_WITH_AS(llama_style(96, 5, 5, 1), "C: wanted a multiple of H = 5, got 96",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(block_weights(llama_style(96, 6, 4, 1), random),
                       "H, the query heads: wanted a multiple of G = 4, got 6",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(block_scratch(llama_style(96, 6, 2, 0), 1, 1),
                       "F, the feed-forward width: wanted at least 1, got 0",
                       std::invalid_argument);
}
