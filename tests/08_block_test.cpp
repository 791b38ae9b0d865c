// What must be true of the block, whose only own work is two sums.
#include <doctest/doctest.h>

#include <map>
#include <set>
#include <type_traits>
#include <utility>

#include "08_block/cases.hpp"
#include "08_block/costs/block_costs.hpp"
#include "08_block/differences/differences.hpp"
#include "rows.hpp"
#include "support/allocations.hpp"
#include "support/apart.hpp"
#include "support/first_difference.hpp"
#include "support/refuses.hpp"

namespace t2t::block_test {

TEST_CASE("by hand: a single token attends to itself, so attention returns what it reads") {
  BlockSettings settings{.C = 2, .H = 1, .G = 1, .D = 2, .F = 1};
  settings.activation = Activation::relu, settings.eps = 1e-12f;
  const Weight one(Tensor<2>{{1, 0}, {0, 1}});
  BlockWeights weights;
  weights.attention_norm.gain = {2, 1};
  weights.feed_forward_norm.gain = {1, 2};
  weights.w_q = weights.w_k = weights.w_v = one;
  weights.w_o = Tensor<2>{{0, 1}, {0, 0}};        // attention of (a, b) gives (b, 0)
  weights.feed_forward.w_up = Tensor<2>{{1, 1}};  // the network of (a, b) gives (0, relu(a + b))
  weights.feed_forward.w_down = Tensor<2>{{0}, {1}};

  // pre-norm: (1, 7) has root mean square 5 and norm (0.4, 1.4), so y is (2.4, 7); its root mean
  // square is 5.2326 and its norm (0.4587, 2.6755), and the sum of that is added to 7. post-norm:
  // (8, 7) over 7.5166 is (2.1286, 0.9313) with the gain, then (2.1286, 3.9911) over 3.1985.
  const Tensor<2> x = {{1, 7}};
  const std::pair<NormPlace, Tensor<2>> cases[] = {
      {NormPlace::before, {{2.40000000f, 10.13420303f}}},
      {NormPlace::after, {{0.66551226f, 2.49567099f}}}};
  for (const auto& [place, want] : cases) {
    settings.norm_place = place;
    CHECK(all_close(block(x, weights, settings, block_rope_table(settings, 1)), want, 2e-6));
    Room room(settings, 1, 1);
    Tensor<2> y = x;
    room.run(y, Block(settings, weights));
    CHECK(all_close(y, want, 2e-6));
  }
}

TEST_CASE("both forms equal PyTorch in float64, pre- and post-norm, LLaMA's and GPT-2's style") {
  for (const Case& c : cases()) {
    CAPTURE(c.name);
    const Tensor<2> want = c.want();
    const double bound = c.bound(largest(want));
    CHECK(all_close(block(c.x(), c.weights(), c.settings, c.table()), want, bound));
    CHECK(all_close(in_chunks(c, c.T), want, bound));
  }
}

/// A matrix whose rows belong to heads, D to each, with the heads in the opposite order.
static Tensor<2> reversed_heads(const Tensor<2>& w, std::size_t D) {
  Tensor<2> other = w;
  const std::size_t heads = w.shape(0) / D;
  for (std::size_t h = 0; h < heads; ++h)
    for (std::size_t d = 0; d < D; ++d)
      std::ranges::copy(row(w, h * D + d), row(other, (heads - 1 - h) * D + d).begin());
  return other;
}

TEST_CASE("the norms of heads are of the block's kind: LayerNorm in both forms") {
  Case c{"", 11, {.C = 30, .H = 4, .G = 2, .D = 10, .F = 33}};
  c.settings.head_norms = true, c.settings.norm = Norm::layer, c.settings.eps = 0.1f;
  const BlockWeights weights = c.weights();
  const Tensor<2> want = block(c.x(), weights, c.settings, c.table());
  Tensor<2> x = c.x();
  Room(c.settings, c.T, c.T).run(x, Block(c.settings, weights));
  CHECK(all_close(x, want, c.bound(largest(want))));
}

TEST_CASE("with 36 heads: if all their weights are in the opposite order, the result is the same") {
  for (const bool head_norms : {false, true}) {
    CAPTURE(head_norms);
    Case many{"many", 9, {.C = 60, .H = 36, .G = 12, .D = 6, .F = 33}};
    many.settings.head_norms = head_norms, many.settings.pairing = Pairing::halves;
    const BlockWeights weights = many.weights();
    BlockWeights other = weights;
    for (Weight* w : {&other.w_q, &other.w_k, &other.w_v}) *w = reversed_heads(w->floats(), 6);
    const Tensor<2> columns = xt::transpose(weights.w_o.floats());  // [H·D, C]
    other.w_o = Tensor<2>(xt::transpose(reversed_heads(columns, 6)));
    const Tensor<2> x = many.x(), want = block(x, weights, many.settings, many.table());
    CHECK(all_close(block(x, other, many.settings, many.table()), want,
                    2 * many.bound(largest(want))));
    for (const BlockWeights& w : {weights, other}) {
      Room room(many.settings, many.T, many.T);
      Tensor<2> y = x;
      room.run(y, Block(many.settings, w));
      CHECK(all_close(y, want, 2 * many.bound(largest(want))));
    }
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

TEST_CASE("a token does not depend on those after it, to the last bit") {
  const Case c = llama();
  Tensor<2> x = c.x();
  const Tensor<2> before = block(x, c.weights(), c.settings, c.table());
  for (float& value : row(x, 20)) value += 1;
  const Tensor<2> after = block(x, c.weights(), c.settings, c.table());
  for (std::size_t t = 0; t < 20; ++t) {
    CAPTURE(t);
    INFO(first_difference(row(after, t), row(before, t)));
    CHECK(std::ranges::equal(row(before, t), row(after, t)));
  }
  CHECK_FALSE(std::ranges::equal(row(before, 21), row(after, 21)));
}

TEST_CASE("zero weights: the identity in pre-norm, the norm alone in post-norm") {
  for (const Case& c : cases()) {
    CAPTURE(c.name);
    BlockWeights weights = c.weights();
    for (Weight* w : {&weights.w_o, &weights.feed_forward.w_down}) w->floats().fill(0);
    for (Tensor<1>* b : {&weights.b_o, &weights.feed_forward.b_down,
                         &weights.post_attention_norm.bias, &weights.post_feed_forward_norm.bias})
      b->fill(0);
    const Tensor<2> x = c.x();
    Room room(c.settings, c.T, c.T);
    Tensor<2> y = x;
    room.run(y, Block(c.settings, weights));
    const bool pre_norm = c.settings.norm_place != NormPlace::after;
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
      const Block block(c.settings, weights);
      Room room(c.settings, c.T, chunk);
      Tensor<2> x = c.x();
      std::size_t t = 0;
      CHECK(allocates_nothing(c.T / chunk, [&] {
        room.run(Matrix(x).rows_from(t, chunk), block, t);
        t += chunk;
      }));
    }
  }
}

TEST_CASE("a trace names every intermediate in order, and changes nothing") {
  const Case c = llama();
  const BlockWeights weights = c.weights();
  Room room(c.settings, c.T, c.T);
  std::string names;
  std::map<Part, Tensor<2>> values;
  Tensor<2> x = c.x();
  room.run(x, Block(c.settings, weights, 0), 0,
           [&](Part part, std::size_t layer, ConstMatrix value) {
             CHECK(layer == 0);
             names += std::string(part_name(part)) + " ";
             values[part] = copy_of(value);
           });
  CHECK(names ==
        "attention_norm q k v q_rotated k_rotated heads attention x_plus_attention "
        "feed_forward_norm gate up hidden feed_forward x_plus_feed_forward ");
  CHECK(all_close(x, in_chunks(c, c.T), 0));
  CHECK(values.size() == 15);
  if (values.size() != 15) return;
  CHECK(all_close<2>(c.x() + values[Part::attention], values[Part::x_plus_attention], 0));
  CHECK(all_close<2>(values[Part::x_plus_attention] + values[Part::feed_forward],
                     values[Part::x_plus_feed_forward], 0));
  CHECK(all_close(values[Part::x_plus_feed_forward], x, 0));
  // up is told as the network made it: hidden takes its place only afterwards.
  CHECK(all_close(matmul_bt(values[Part::feed_forward_norm], weights.feed_forward.w_up),
                  values[Part::up], 0));
  CHECK(all_close(gated(c.settings.activation, values[Part::gate], values[Part::up]),
                  values[Part::hidden], 8 * 0x1p-24 * largest(values[Part::hidden])));
  CHECK(trace_name(Part::up, 7) == "layer 7 up");
  CHECK(trace_name(Part::logits, 0) == "logits");
}

TEST_CASE("by hand: what belongs to a layer is traced with its number") {
  CHECK(trace_name(Part::q_rotated, 3) == "layer 3 q_rotated");
  for (const Part part : {Part::embedding, Part::final_norm, Part::logits})
    CHECK(trace_name(part, 3) == part_name(part));
}

TEST_CASE("a trace in post-norm has each norm after its sum, and no rotated q and k without RoPE") {
  const auto order = [](const std::string& name) {
    std::string names;
    for (const Case& c : cases()) {
      if (c.name != name) continue;
      const BlockWeights weights = c.weights();
      Room room(c.settings, c.T, c.T);
      Tensor<2> x = c.x();
      room.run(x, Block(c.settings, weights), 0, [&](Part part, std::size_t, ConstMatrix) {
        names += std::string(part_name(part)) + " ";
      });
    }
    return names;
  };
  CHECK(order("llama_post") ==
        "q k v q_rotated k_rotated heads attention x_plus_attention attention_norm "
        "gate up hidden feed_forward x_plus_feed_forward feed_forward_norm ");
  CHECK(order("post") ==
        "q k v heads attention x_plus_attention attention_norm "
        "up hidden feed_forward x_plus_feed_forward feed_forward_norm ");
  CHECK(order("both") ==
        "attention_norm q k v q_rotated k_rotated heads attention post_attention_norm "
        "x_plus_attention feed_forward_norm gate up hidden feed_forward post_feed_forward_norm "
        "x_plus_feed_forward ");
}

TEST_CASE("parameters: those of the models, and the parts sum to the whole") {
  const auto count = [](const BlockSettings& settings) {
    return total(block_costs(settings, 1, 1)).parameters;
  };
  const BlockSettings small = llama_style(256, 8, 4, 682);
  REQUIRE(ending_apart([&] { count(small); }) == "returned");
  CHECK(count(small) == 720896);
  CHECK(256 + 4 * count(small) + 2 * 8192 * 256 == 7078144);    // foundry-small, its own head
  CHECK(count(llama_style(4096, 32, 32, 11008)) == 202383360);  // LLaMA-2-7B's
  CHECK(count(gpt2_style(768, 12)) == 7087872);                 // GPT-2's
  Random random(1);
  for (const std::size_t F : {0, 1}) {
    BlockSettings narrow = gpt2_style(4, 2);
    narrow.F = F;
    CHECK(parameter_count(draw_block(narrow, random)) == count(narrow));
  }
  for (const Case& c : cases()) {
    CHECK(parameter_count(draw_block(c.settings, random)) == count(c.settings));
    CHECK(parameter_count(c.weights()) == count(c.settings));
  }
}

TEST_CASE(
    "the list of tensors has each name once, its first numbers, and empty ones for what is left "
    "out") {
  for (const Case& c : cases()) {
    CAPTURE(c.name);
    Random random(4);
    const BlockWeights weights = draw_block(c.settings, random, 0.5f);
    std::set<std::string> names;
    for_each_tensor(weights, c.settings, [&](const TensorInfo& info, const auto& tensor) {
      CAPTURE(full_name(info));
      CHECK(names.insert(full_name(info)).second);
      CHECK(tensor.size() == info.size());
      if constexpr (std::is_same_v<decltype(tensor), const Tensor<1>&>) {
        for (const float value : tensor) CHECK(value == (info.role == Role::gain ? 1 : 0));
      } else if (info.size() > 0) {
        double squares = 0;
        for (const float value : tensor.floats()) squares += double(value) * value;
        const double scale = info.role == Role::into_stream ? 0.5 : 1, n = double(info.size());
        const double spread = scale / std::sqrt(double(info.cols));  // 5 standard deviations
        CHECK(std::abs(std::sqrt(squares / n) / spread - 1) < 5 / std::sqrt(2 * n));
      }
    });
    CHECK(names.size() == 32);
  }
}

TEST_CASE(
    "a model's tables begin around 0, with deviations of 0.02 for tokens, 0.01 for positions") {
  Random random(5);
  const std::size_t n = 50 * 40;
  for (const auto& [role, deviation] :
       {std::pair(Role::embedding, 0.02), {Role::positions, 0.01}}) {
    Weight table;
    draw_tensor({"table", 50, 40, role}, random, 0.5f, table);
    double squares = 0;
    for (const float value : table.floats()) squares += double(value) * value;
    CHECK(std::abs(std::sqrt(squares / n) / deviation - 1) < 5 / std::sqrt(2.0 * n));
  }
}

TEST_CASE("FLOPs by hand: two for each number of a matrix, 4·H·D for each key seen") {
  // T = 2 tokens, the last of S = 5: they see 4 and 5 keys.
  BlockSettings settings{.C = 4, .H = 2, .G = 1, .D = 2, .F = 3};
  const BlockCosts costs = block_costs(settings, 2, 5);
  CHECK(costs.projections.flops == 2 * 2 * (4 + 2 + 2) * 4);
  CHECK(costs.attention.flops == 4 * (4 + 5) * 4);
  CHECK(costs.output.flops == 2 * 2 * 4 * 4);
  CHECK(costs.feed_forward.flops == 2 * 2 * 3 * 3 * 4);
  settings.window = 3;  // each sees 3 keys
  CHECK(block_costs(settings, 2, 5).attention.flops == 4 * (3 + 3) * 4);
}

TEST_CASE(
    "a bad call is refused with what was wanted and what was got; x and the caches do not change") {
  struct Call {
    BlockSettings settings;
    BlockWeights weights;
    Matrix x;
    std::vector<Run> runs;
    BlockScratch& scratch;
    BlockFunctions& functions;
  };
  const auto refuses = [](const std::string& message, const std::function<void(Call&)>& change) {
    CAPTURE(message);
    const Case c = llama();
    const BlockWeights weights = c.weights();
    Room room(c.settings, c.T, 8);
    KvCache& cache = room.attention.caches[0][0];
    cache.keys.fill(3), cache.values.fill(1000);  // rows that are not filled must stay so
    Tensor<2> x = c.x();
    for (const std::size_t t : {0, 5})  // 10 positions filled
      room.run(Matrix(x).rows_from(t, 5), Block(c.settings, weights), t);
    Call call{c.settings,   weights,      Matrix(x).rows_from(10, 8),
              {{0, 10, 8}}, room.scratch, room.functions};
    change(call);

    const std::vector<std::vector<KvCache>> caches_before = room.attention.caches;
    const Tensor<2> x_before = x;
    REFUSES(block_rows(call.x, call.runs, Block(call.settings, call.weights), call.functions,
                       call.scratch),
            message);
    CHECK(all_close(x, x_before, 0));
    const KvCache& before = caches_before[0][0];
    CHECK(cache.length == before.length);
    CHECK(all_close(cache.keys, before.keys, 0));
    CHECK(all_close(cache.values, before.values, 0));
  };
  refuses("H, the query heads: wanted a multiple of G = 4, got 6",
          [](Call& c) { c.settings.G = 4; });
  refuses("functions.network: wanted one, since F is 0, got none",
          [](Call& c) { c.settings.F = 0, c.weights.feed_forward = {}; });
  refuses("eps: wanted a number above 0, got 0", [](Call& c) { c.settings.eps = 0; });
  refuses("theta: wanted a number above 0, got -1; eps: wanted a number above 0, got 0",
          [](Call& c) { c.settings.theta = -1, c.settings.eps = 0; });
  refuses("D, the width of a head: wanted an even number for RoPE, got 15",
          [](Call& c) { c.settings.D = 15; });
  refuses("frequencies: wanted none, or D/2 = 8, got 3", [](Call& c) {
    c.settings.frequencies = {1, 1, 1};
  });
  refuses("frequencies: wanted numbers above 0, got 0",
          [](Call& c) { c.settings.frequencies = {1, 1, 1, 1, 1, 1, 1, 0}; });
  refuses("biases: wanted none or those of q, k and v with a gated activation, got swiglu",
          [](Call& c) { c.settings.biases = Biases::all; });
  refuses("score_cap: wanted 0 or a number above 0, got -1",
          [](Call& c) { c.settings.score_cap = -1; });
  refuses("chosen, the experts of a token: wanted 1 to E = 3, got 4",
          [](Call& c) { c.settings.experts = 3, c.settings.chosen = 4; });
  refuses("chosen, the experts of a token: wanted 0 to E = 0, got 1",
          [](Call& c) { c.settings.chosen = 1; });
  refuses("shared, the width of a network beside experts: wanted 0 without experts, got 5",
          [](Call& c) { c.settings.shared = 5; });
  refuses("shared_gate: wanted a shared network too, got none",
          [](Call& c) { c.settings.shared_gate = true; });
  refuses("heads_together: wanted head_norms too, got none",
          [](Call& c) { c.settings.heads_together = true; });
  refuses("experts: wanted E = 2, got 0",
          [](Call& c) { c.settings.experts = 2, c.settings.chosen = 1; });
  refuses("functions.network: wanted one, since the block has experts, got none", [](Call& c) {
    c.settings.experts = 2, c.settings.chosen = 1;
    c.weights.experts.assign(2, std::exchange(c.weights.feed_forward, {}));
    c.weights.router = empty(2, 96);
  });
  refuses("x: wanted shape [8, 96], got [8, 95]", [](Call& c) { c.x.cols = 95; });
  refuses("w_k: wanted shape [32, 96], got [96, 96]",
          [](Call& c) { c.weights.w_k = c.weights.w_q; });
  refuses("w_o: wanted shape [96, 96], got [96, 32]",
          [](Call& c) { c.weights.w_o = empty(96, 32); });
  refuses("b_q: wanted shape [0], got [96]",
          [](Call& c) { c.weights.b_q = xt::zeros<float>({96}); });
  refuses("feed_forward_norm.gain: wanted shape [96], got [0]",
          [](Call& c) { c.weights.feed_forward_norm.gain = {}; });
  refuses("w_down: wanted shape [96, 160], got [160, 96]",
          [](Call& c) { c.weights.feed_forward.w_down = c.weights.feed_forward.w_up; });
  refuses("w_up: wanted shape [0, 0], got [160, 96]", [](Call& c) {
    c.settings.F = 0, c.weights.feed_forward.w_gate = c.weights.feed_forward.w_down = empty(0, 0);
  });
  refuses("T, the rows of x: wanted at least 1, got 0", [](Call& c) { c.x.rows = 0; });
  refuses("T, the rows of x: wanted at most the 8 that the scratch is made for, got 9",
          [](Call& c) { c.x.rows = 9; });
  refuses("scratch: wanted room for C = 96, H·D = 96 and G·D = 32, got 96, 48 and 32",
          [](Call& c) { c.scratch.q = empty(8, 48); });
  refuses("functions.attention: wanted one, such as a CachedAttention, got none",
          [](Call& c) { c.functions.attention = {}; });
  refuses("scratch.feed_forward: wanted up [T, 160] and gate [T, 160], got [T, 159] and [T, 160]",
          [](Call& c) { c.scratch.feed_forward.up = empty(8, 159); });
  refuses("scratch.feed_forward: wanted up [T, 160] and gate [T, 160], got [T, 160] and [T, 0]",
          [](Call& c) { c.scratch.feed_forward.gate = empty(0, 0); });
  const std::string of_layer =
      "attention, layer 0: made for H = 6, G = 2, D = 16, theta = 10000, neighbours; wanted H = 6, "
      "G = 2, D = 16, ";
  refuses(of_layer + "theta = 500, neighbours", [](Call& c) { c.settings.theta = 500; });
  refuses(of_layer + "theta = 10000, scaled, neighbours",
          [](Call& c) { c.settings.frequencies = rope_frequencies(16, 500); });
  refuses(of_layer + "theta = 10000, halves",
          [](Call& c) { c.settings.pairing = Pairing::halves; });
  refuses(of_layer + "no RoPE", [](Call& c) { c.settings.uses_rope = false; });
  refuses("sequence 0: wanted at most S = 37 positions in all, got 30 and 8 more", [](Call& c) {
    c.runs = {{0, 30, 8}};
  });
  refuses("sequence 0: wanted at most S = 37 positions in all, got 38 and 8 more", [](Call& c) {
    c.runs = {{0, 38, 8}};
  });
  refuses("sequence 0: wanted a position of at most its length 10, got 11", [](Call& c) {
    c.runs = {{0, 11, 8}};
  });
  refuses("sequence 0: wanted 1 to 8 rows in a call, got 0", [](Call& c) {
    c.runs = {{0, 10, 0}};
  });
  refuses("runs: wanted 8 rows in all, got 7", [](Call& c) { c.runs = {{0, 10, 7}}; });
  refuses("runs: wanted 8 rows in all, got 0", [](Call& c) { c.runs = {}; });
  refuses("runs: wanted sequences from 0 to 0, got 1", [](Call& c) { c.runs = {{1, 0, 8}}; });
  refuses("sequence of the runs: wanted each once, got 0", [](Call& c) {
    c.runs = {{0, 10, 3}, {0, 10, 5}};
  });
}

TEST_CASE("the formula refuses a text of another width and weights of other shapes") {
  const Case c = llama();
  BlockWeights weights = c.weights();
  REFUSES(block(empty(c.T, 95), weights, c.settings, c.table()),
          "x: wanted shape [37, 96], got [37, 95]");
  BlockSettings settings = c.settings;
  settings.eps = 0;
  REFUSES(block(c.x(), weights, settings, c.table()), "eps: wanted a number above 0, got 0");
  weights.w_k = weights.w_q;
  REFUSES(block(c.x(), weights, c.settings, c.table()), "w_k: wanted shape [32, 96], got [96, 96]");
}

TEST_CASE("bad settings are refused when they are used, and scratch that is too small") {
  Random random(1);
  REFUSES(llama_style(96, 5, 5, 1), "C: wanted a multiple of H = 5, got 96");
  REFUSES(draw_block(llama_style(96, 6, 4, 1), random),
          "H, the query heads: wanted a multiple of G = 4, got 6");
  const Case c = llama();
  REFUSES(BlockScratch(c.settings, 0), "max_rows, the rows of a call: wanted at least 1, got 0");
  REFUSES(CachedAttention(c.settings, 0, 1),
          "S, the positions of the caches: wanted at least 1, got 0");

  const BlockWeights weights = c.weights();
  CachedAttention of_one_row(c.settings, c.T, 1);
  BlockScratch scratch(c.settings, 2);
  Tensor<2> x = xt::view(c.x(), xt::range(0, 2), xt::all());
  REFUSES(block_rows(x, Run{0, 0, 2}, Block(c.settings, weights),
                     {.attention = std::ref(of_one_row)}, scratch),
          "sequence 0: wanted 1 to 1 rows in a call, got 2");
  const std::string threads = std::to_string(thread_count());
  const std::string says = "attention: made for 1 layers and " + threads +
                           " threads, wanted layer 1 and " + threads + " threads";
  REFUSES(block_rows(Matrix(x).rows_from(0, 1), Run{0, 0, 1}, Block(c.settings, weights, 1),
                     {.attention = std::ref(of_one_row)}, scratch),
          says);
}

TEST_CASE("differences from LLaMA: each is listed, and refused unless it is known") {
  const BlockSettings llama = llama_style(12, 6, 2, 8);
  CHECK(differences_from_llama(llama).empty());
  const auto listed = [&](Difference difference, const std::string& words,
                          const std::function<void(BlockSettings&)>& change) {
    CAPTURE(words);
    BlockSettings settings = llama;
    change(settings);
    CHECK(differences_from_llama(settings) == std::vector{difference});
    expect_only(differences_from_llama(settings), {Difference::tied, difference}, "x");
    REFUSES(expect_only(differences_from_llama(settings), {}, "the model to save"),
            "the model to save: wanted one without " + words);
  };
  using S = BlockSettings;
  listed(Difference::layer_norm, "norms other than RMSNorm", [](S& s) { s.norm = Norm::layer; });
  listed(Difference::norms_after, "post-norm", [](S& s) { s.norm_place = NormPlace::after; });
  listed(Difference::norms_both, "norms before and after each sublayer",
         [](S& s) { s.norm_place = NormPlace::both; });
  listed(Difference::head_norms, "QK-norm", [](S& s) { s.head_norms = true; });
  BlockSettings together = llama;
  together.head_norms = together.heads_together = true;
  CHECK(differences_from_llama(together) ==
        std::vector{Difference::head_norms, Difference::heads_together});
  REFUSES(
      expect_only(differences_from_llama(together), {Difference::head_norms}, "the model to train"),
      "the model to train: wanted one without QK-norm of all heads together");
  listed(Difference::other_activation, "a feed-forward network other than SwiGLU",
         [](S& s) { s.activation = Activation::geglu; });
  listed(Difference::biases_of_qkv, "biases of q, k and v", [](S& s) { s.biases = Biases::qkv; });
  listed(Difference::biases_of_all, "biases", [](S& s) { s.biases = Biases::all; });
  listed(Difference::window, "a sliding window", [](S& s) { s.window = 3; });
  listed(Difference::no_rope, "attention without RoPE", [](S& s) { s.uses_rope = false; });
  listed(Difference::halves, "RoPE with the pairing halves",
         [](S& s) { s.pairing = Pairing::halves; });
  listed(Difference::scaled_rope, "scaled frequencies", [](S& s) { s.frequencies = {0.5}; });
  listed(Difference::score_scale, "a score scale other than 1/√D",
         [](S& s) { s.score_scale = 0.5f; });
  listed(Difference::score_cap, "capped scores", [](S& s) { s.score_cap = 50; });
  listed(Difference::experts, "experts", [](S& s) { s.experts = 4, s.chosen = 1; });
  S experts = llama;
  experts.experts = 4, experts.chosen = 1, experts.normalized = false, experts.shared = 8;
  CHECK(differences_from_llama(experts) == std::vector{Difference::experts,
                                                       Difference::unnormalized_experts,
                                                       Difference::shared_network});

  S gpt2 = gpt2_style(12, 6);
  const std::vector all = {Difference::layer_norm, Difference::other_activation,
                           Difference::biases_of_all, Difference::no_rope};
  CHECK(differences_from_llama(gpt2) == all);
  gpt2.C = 24, gpt2.theta = 5, gpt2.eps = 1;  // sizes and numbers are not listed
  CHECK(differences_from_llama(gpt2) == all);
}

}  // namespace t2t::block_test
