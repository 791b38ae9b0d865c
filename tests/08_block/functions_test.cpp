// What a caller may replace in a block, and what may differ: texts, weights, attention, network,
// sums, layers. Each test does so without changing a line of chapter 08.
#include <doctest/doctest.h>

#include <barrier>
#include <stdexcept>
#include <thread>
#include <type_traits>
#include <utility>

#include "03_rope/fast/rope_rows.hpp"
#include "06_gqa/fast/decode_attention.hpp"
#include "07_swiglu/fast/feed_forward_rows.hpp"
#include "08_block/cases.hpp"
#include "linalg.hpp"
#include "support/packed_stand_ins.hpp"
#include "support/refuses.hpp"

namespace t2t::functions_test {

TEST_CASE("another kernel is called for each chunk, with all cached positions of the text") {
  const Case c = llama();
  for (const std::size_t chunk : {c.T, std::size_t(16), std::size_t(1)}) {
    CAPTURE(chunk);
    std::size_t calls = 0, keys = 0;
    GroupedScratch own(chunk, c.T, c.settings.H, c.settings.D);
    const Tensor<2> got = in_chunks(
        c, chunk,
        [&](ConstMatrix q, const KeyValueHeads& heads, const ScoreRule& rule, Matrix out) {
          ++calls, keys = heads.S();
          grouped_attention_rows(q, heads, rule, out, own);
        });
    CHECK(calls == (c.T + chunk - 1) / chunk);
    CHECK(keys == c.T);
    CHECK(all_close(got, in_chunks(c, chunk), 0));
  }
}

TEST_CASE("several texts in one call: each as if it were alone, at its own position") {
  for (const Case& c : cases()) {
    CAPTURE(c.name);
    const BlockWeights weights = c.weights();
    const Block block(c.settings, weights);
    const std::size_t sequences = 3, C = c.settings.C, T = c.T;
    // Text i is x from token i on, so that all differ; text 2 has 2 tokens in its cache.
    const auto rows = [](const Tensor<2>& of, std::size_t from, std::size_t count) {
      return copy_of(ConstMatrix(of).rows_from(from, count));
    };
    const auto alone = [&](std::size_t i) {
      Room room(c.settings, T, T);
      Tensor<2> x = rows(c.x(), i, T - i);
      room.run(x, block);
      return x;
    };
    Room room(c.settings, 3 * T, T, sequences);
    Tensor<2> early = rows(c.x(), 2, 2);  // the first 2 of text 2
    block_rows(early, Run{2, 0, 2}, block, room.functions, room.scratch);

    // All of text 1, the rest of text 2, then 4 tokens of text 0: of unequal lengths, in any order.
    const std::vector<Run> runs = {{1, 0, T - 1}, {2, 2, T - 4}, {0, 0, 4}};
    const std::size_t from[] = {1, 4, 0};
    const Tensor<2> sequence = c.x();
    Tensor<2> x = empty(2 * T - 1, C);
    std::size_t first = 0;
    for (std::size_t r = 0; r < 3; first += runs[r].rows, ++r)
      for (std::size_t t = 0; t < runs[r].rows; ++t)
        std::ranges::copy(row(sequence, from[r] + t), row(x, first + t).begin());
    block_rows(x, runs, block, room.functions, room.scratch);

    const double bound = c.bound(largest(c.want()));
    const Tensor<2> text_1 = alone(1), text_2 = alone(2), text_0 = in_chunks(c, 4);
    CHECK(all_close(rows(x, 0, T - 1), text_1, bound));
    CHECK(all_close(early, rows(text_2, 0, 2), bound));
    CHECK(all_close(rows(x, T - 1, T - 4), rows(text_2, 2, T - 4), bound));
    CHECK(all_close(rows(x, 2 * T - 5, 4), rows(text_0, 0, 4), bound));
  }
}

TEST_CASE("a call whose kernel throws can be made again, and what it left counts for nothing") {
  const Case c = llama();
  const BlockWeights weights = c.weights();
  GroupedScratch own(4, 8, c.settings.H, c.settings.D);
  const Tensor<2> sequence = c.x();
  bool refused = false;
  Room room(c.settings, 8, 4, 2,
            [&](ConstMatrix q, const KeyValueHeads& heads, const ScoreRule& rule, Matrix out) {
              if (q.rows == 3 && !std::exchange(refused, true)) throw std::runtime_error("three");
              grouped_attention_rows(q, heads, rule, out, own);
            });
  const auto rows = [&](std::size_t t, std::size_t count) {
    return copy_of(ConstMatrix(sequence).rows_from(t, count));
  };
  const std::vector<Run> first_runs = {{0, 0, 4}, {1, 0, 2}}, runs = {{1, 2, 1}, {0, 4, 3}};
  Tensor<2> first = rows(0, 6), x = rows(6, 4);
  const Block block(c.settings, weights);
  block_rows(first, first_runs, block, room.functions, room.scratch);
  REFUSES_AS(block_rows(x, runs, block, room.functions, room.scratch), "three", std::runtime_error);
  CHECK(all_close(x, rows(6, 4), 0));

  Room calm(c.settings, 8, 4, 2);
  Tensor<2> same_first = rows(0, 6), want = x;
  block_rows(same_first, first_runs, block, calm.functions, calm.scratch);
  block_rows(want, runs, block, calm.functions, calm.scratch);
  block_rows(x, runs, block, room.functions, room.scratch);
  CHECK(all_close(x, want, 0));
}

TEST_CASE("a text goes on from an earlier position as if what came after it had never come") {
  for (const Case& c : cases()) {
    CAPTURE(c.name);
    const BlockWeights weights = c.weights();
    const Block block(c.settings, weights);
    Room room(c.settings, c.T, c.T);
    Tensor<2> x = c.x(), other = 2 * c.x();
    room.run(other, block);
    room.run(Matrix(x).rows_from(0, 2), block);
    room.run(Matrix(x).rows_from(2, c.T - 2), block, 2);
    CHECK(all_close(x, c.want(), c.bound(largest(c.want()))));
  }
}

TEST_CASE("CachedAttention refuses q, k, v, heads and runs that do not fit each other") {
  const Case c = llama();
  const BlockWeights weights = c.weights();
  const Block block(c.settings, weights);
  CachedAttention attention(c.settings, 8, 4);
  Tensor<2> q = empty(4, 96), k = empty(4, 32), v = empty(4, 32), heads = empty(4, 96);
  const auto refuses = [&](const char* why, Matrix q, Matrix k, Matrix v, Matrix heads) {
    const Run run{0, 0, q.rows};
    REFUSES(attention({block, run, q, k, v}, heads, {}), why);
    CHECK(attention.caches[0][0].length == 0);
  };
  const auto but_one = [](Tensor<2>& x) { return Matrix(x).rows_from(0, 3); };
  refuses("q: wanted shape [4, 96], got [4, 32]", k, k, v, heads);
  refuses("k: wanted shape [4, 32], got [3, 32]", q, but_one(k), v, heads);
  refuses("v: wanted shape [4, 32], got [3, 32]", q, k, but_one(v), heads);
  refuses("heads: wanted shape [4, 96], got [3, 96]", q, k, v, but_one(heads));
  REFUSES(CachedAttention(std::span<const BlockSettings>(), 8, 4),
          "layers: wanted at least 1, got 0");
  REFUSES(BlockScratch(std::span<const BlockSettings>(), 4), "layers: wanted at least 1, got 0");
}

TEST_CASE("a packed weight can take the place of every matrix of a block") {
  for (const Case& c : cases()) {
    CAPTURE(c.name);
    BlockWeights weights = c.weights();
    std::size_t products = 0, matrices = 0;
    for_each_tensor(weights, c.settings, [&](const TensorInfo& info, auto& tensor) {
      if constexpr (std::is_same_v<decltype(tensor), Weight&>)
        if (info.size() > 0)
          tensor = doubled(tensor.floats(), 2 * tensor.bytes(), &products), ++matrices;
    });
    Room room(c.settings, c.T, c.T);
    Tensor<2> x = c.x();
    room.run(x, Block(c.settings, weights));
    CHECK(products == matrices);
    CHECK(matrices == (is_gated(c.settings.activation) ? 7 : 6));
    CHECK(all_close(x, c.want(), c.bound(largest(c.want()))));
    CHECK(all_close(block(c.x(), weights, c.settings, c.table()), c.want(),
                    c.bound(largest(c.want()))));
  }
}

TEST_CASE("scores by another rule: the formula and the kernel, whole and in chunks") {
  Case c = llama();
  const Tensor<2> before = in_chunks(c, c.T);
  c.settings.score_scale = 0.8f, c.settings.score_cap = 1.5f, c.settings.window = 9;
  const Tensor<2> want = block(c.x(), c.weights(), c.settings, c.table());
  for (const std::size_t chunk : {c.T, std::size_t(5), std::size_t(1)})
    CHECK(all_close(in_chunks(c, chunk), want, 4 * c.bound(largest(want))));
  CHECK_FALSE(all_close(before, want, 1e-3));
}

TEST_CASE("another attention can keep a text's keys in two separate caches") {
  // The first 20 positions in one cache, the rest in one that begins there. Each gives a result;
  // chapter 06's join weighs the two by the sums of their exponentials.
  const Case c = llama();
  const auto& s = c.settings;
  const BlockWeights weights = c.weights();
  const RopeTable table = c.table();
  KvCache old = make_kv_cache(s.G, 20, s.D), recent = make_kv_cache(s.G, 17, s.D);
  const Attention in_two_runs = [&](const Projected& in, Matrix heads, const Trace&) {
    KvCache& cache = old.length < 20 ? old : recent;
    const std::size_t position = old.length + recent.length;
    rope_rows(in.q, s.D, table, position, s.pairing);
    rope_rows(in.k, s.D, table, position, s.pairing);
    append(cache, in.k, in.v);
    const std::size_t N = s.H / s.G;
    Tensor<2> scores = empty(N, 20), out = empty(N, s.D), log_sums = empty(N, 1);
    for (std::size_t g = 0; g < s.G; ++g) {
      const ConstMatrix queries(in.q.head(g * N, s.D).data, N, s.D, s.D);  // one token: [N, D]
      Tensor<3> stretches = empty(N, 2, s.D);
      Tensor<2> sums = empty(N, 2);
      std::size_t runs = 0;
      for (const KvCache* part : {&old, &recent}) {
        if (part->length == 0) continue;
        const KeyValueHeads of = cached_heads(*part);
        attend_stretch(queries, of.keys(g), of.values(g),
                       {scores.data(), N, part->length, part->length}, out, log_sums);
        for (std::size_t n = 0; n < N; ++n) {
          std::ranges::copy(row(out, n), &stretches(n, runs, 0));
          sums(n, runs) = log_sums(n, 0);
        }
        ++runs;
      }
      for (std::size_t n = 0; n < N; ++n)
        join_stretches(matrix(stretches, n).rows_from(0, runs), row(sums, n).first(runs),
                       heads.head(g * N + n, s.D).row(0));
    }
  };
  BlockScratch scratch(s, 1);
  Tensor<2> x = c.x();
  for (std::size_t t = 0; t < c.T; ++t)
    block_rows(Matrix(x).rows_from(t, 1), Run{0, t, 1}, Block(s, weights),
               {.attention = in_two_runs}, scratch);
  CHECK(all_close(x, c.want(), c.bound(largest(c.want()))));
}

TEST_CASE(
    "another network can take chapter 07's place: two experts, each with half of the tokens") {
  // Even tokens go to one network, odd ones to the other, which is the block's own. A block
  // without a network of its own (F = 0) needs one.
  const Case c = llama();
  BlockSettings settings = c.settings;
  settings.F = 0;
  BlockWeights weights = c.weights();
  const FeedForwardWeights own = weights.feed_forward;
  Random random(5);
  const FeedForwardWeights other =
      feed_forward_weights(c.settings.C, c.settings.F, c.settings.activation, random);
  weights.feed_forward = {};
  FeedForwardScratch scratch(1, c.settings.F, c.settings.activation);
  const FeedForward experts = [&](const Block& block, ConstMatrix x, Matrix y, const Trace&) {
    for (std::size_t t = 0; t < x.rows; ++t)
      feed_forward_rows(x.rows_from(t, 1), t % 2 == 0 ? other : own, block.settings().activation,
                        scratch, y.rows_from(t, 1));
  };
  Room room(settings, c.T, c.T);
  room.functions.network = experts;
  Tensor<2> x = c.x();
  room.run(x, Block(settings, weights));

  // Attention does not depend on the network, so each token has the result of one of two blocks.
  BlockWeights with_other = c.weights();
  with_other.feed_forward = other;
  const Tensor<2> of_own = c.want(), of_other = block(c.x(), with_other, c.settings, c.table());
  for (std::size_t t = 0; t < c.T; ++t) {
    const Tensor<2>& want = t % 2 == 0 ? of_other : of_own;
    CHECK(all_close(copy_of(Matrix(x).rows_from(t, 1)), copy_of(ConstMatrix(want).rows_from(t, 1)),
                    c.bound(largest(want))));
  }
}

TEST_CASE("the formula takes the network that it is given, also if the block has one of its own") {
  const Case c = llama();
  const ReferenceNetwork nothing = [](const Tensor<2>& x, const BlockWeights&,
                                      const BlockSettings&) {
    return Tensor<2>(xt::zeros_like(x));
  };
  BlockWeights without = c.weights();
  without.feed_forward.w_down = Tensor<2>(xt::zeros<float>({c.settings.C, c.settings.F}));
  CHECK(all_close(block(c.x(), c.weights(), c.settings, c.table(), nothing),
                  block(c.x(), without, c.settings, c.table()), 0));
}

TEST_CASE("before a sum, the stream is shown as it is, in every place of the norm") {
  for (const NormPlace place : {NormPlace::before, NormPlace::after, NormPlace::both}) {
    CAPTURE(int(place));
    Case c = llama();
    c.settings.norm_place = place;
    const BlockWeights weights = c.weights();
    Room room(c.settings, c.T, c.T);
    std::vector<Tensor<2>> seen;
    room.functions.before_sum = [&](const Block&, Part, ConstMatrix x, Matrix) {
      seen.push_back(copy_of(x));
    };
    Tensor<2> x = c.x(), halfway;
    room.run(x, Block(c.settings, weights), 0, [&](Part part, std::size_t, ConstMatrix value) {
      const Part last = place == NormPlace::after ? Part::attention_norm : Part::x_plus_attention;
      if (part == last) halfway = copy_of(value);
    });
    REQUIRE(seen.size() == 2);
    CHECK(all_close(seen[0], c.x(), 0));
    CHECK(all_close(seen[1], halfway, 0));
  }
}

/// The rows, or the columns, of half a weight: part 0 or 1.
Weight half_of_rows(const Weight& w, std::size_t part) {
  return Weight(copy_of(ConstMatrix(w.floats()).rows_from(part * w.rows() / 2, w.rows() / 2)));
}
Weight half_of_cols(const Weight& w, std::size_t part) {
  return Weight(copy_of(ConstMatrix(w.floats()).cols_from(part * w.cols() / 2, w.cols() / 2)));
}

/// Two halves of a block, each on a thread of its own, give what the whole gives.
static void check_halves(const Case& c) {
  // Each half has H/2 heads, G/2 groups and F/2 hidden numbers, and all of x. It runs on a thread
  // of its own and waits before the sum: both threads add what both have made.
  const BlockWeights whole = c.weights();
  BlockSettings settings = c.settings;
  settings.H /= 2, settings.G /= 2, settings.F /= 2;
  Tensor<2> made[2] = {empty(c.T, settings.C), empty(c.T, settings.C)}, x[2] = {c.x(), c.x()};
  std::barrier both(2);
  std::string parts[2];
  const auto run = [&](std::size_t part) {
    BlockWeights half;
    half.attention_norm = whole.attention_norm, half.feed_forward_norm = whole.feed_forward_norm;
    half.post_attention_norm = whole.post_attention_norm;
    half.post_feed_forward_norm = whole.post_feed_forward_norm;
    half.w_q = half_of_rows(whole.w_q, part), half.w_k = half_of_rows(whole.w_k, part);
    half.w_v = half_of_rows(whole.w_v, part), half.w_o = half_of_cols(whole.w_o, part);
    half.feed_forward.w_gate = half_of_rows(whole.feed_forward.w_gate, part);
    half.feed_forward.w_up = half_of_rows(whole.feed_forward.w_up, part);
    half.feed_forward.w_down = half_of_cols(whole.feed_forward.w_down, part);
    Room room(settings, c.T, c.T);
    room.functions.before_sum = [&](const Block&, Part of, ConstMatrix, Matrix added) {
      parts[part] += std::string(part_name(of)) + " ";
      made[part] = copy_of(added);
      both.arrive_and_wait();
      for (std::size_t t = 0; t < added.rows; ++t)
        for (std::size_t k = 0; k < added.cols; ++k)
          added.row(t)[k] = made[0](t, k) + made[1](t, k);
      both.arrive_and_wait();
    };
    room.run(x[part], Block(settings, half));
  };
  std::thread other(run, 1);
  run(0);
  other.join();
  CHECK(parts[0] == "attention feed_forward ");
  CHECK(all_close(x[0], x[1], 0));
  Tensor<2> want = c.x();
  Room(c.settings, c.T, c.T).run(want, Block(c.settings, whole));
  CHECK(all_close(x[0], want, c.bound(largest(want))));
}

TEST_CASE(
    "two blocks with half of the heads and of the network each can sum their results before "
    "adding") {
  check_halves(llama());
  Case both = llama();  // the norm after a part is that of the sum
  both.settings.norm_place = NormPlace::both;
  check_halves(both);
}

TEST_CASE("layers may differ in all but C: one scratch and one attention serve them all") {
  BlockSettings wide{.C = 24, .H = 6, .G = 2, .D = 4, .F = 31},
      narrow{.C = 24, .H = 2, .G = 1, .D = 6, .F = 9};
  narrow.activation = Activation::relu, narrow.theta = 500, narrow.norm = Norm::layer;
  BlockSettings scaled = wide;
  scaled.frequencies = rope_frequencies(4, 100);
  const std::vector<BlockSettings> layers = {narrow, scaled, wide, narrow};
  Random random(3);
  std::vector<BlockWeights> weights;
  for (const BlockSettings& settings : layers) weights.push_back(draw_block(settings, random));
  const std::size_t T = 9;
  const Tensor<2> x = random.normal<2>({T, 24});
  Tensor<2> want = x, got = x;
  CachedAttention attention(layers, T, 4);
  BlockScratch scratch(layers, 4);
  for (std::size_t l = 0; l < layers.size(); ++l)
    want = block(want, weights[l], layers[l], block_rope_table(layers[l], T));
  for (std::size_t t = 0; t < T; t += 4)
    for (std::size_t l = 0; l < layers.size(); ++l) {
      const Run run{0, t, std::min<std::size_t>(4, T - t)};
      block_rows(Matrix(got).rows_from(t, run.rows), run, Block(layers[l], weights[l], l),
                 {.attention = std::ref(attention)}, scratch);
    }
  // Four blocks as Case::bound has it, of sums of up to C, D, T, H·D and F terms.
  const double K = 4 * std::sqrt(24.) + 4 * std::sqrt(6.) + 3 + std::sqrt(24.) + std::sqrt(31.);
  CHECK(all_close(got, want, std::sqrt(4.) * K * 0x1p-24 * largest(want)));

  narrow.C = 25;
  REFUSES(BlockScratch(std::vector{wide, narrow}, 4),
          "C, the width: wanted 24 in every layer, got 25");
}

}  // namespace t2t::functions_test
