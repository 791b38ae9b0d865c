// What must be true of Qwen3-Next: it is its parts put together, its steps give what the whole text
// gives, and it keeps as many bytes as its formula says.
#include "24_delta_rule/qwen3_next/qwen3_next.hpp"

#include <doctest/doctest.h>

#include <span>
#include <vector>

#include "02_normalization/rms_norm.hpp"
#include "13_training/differences.hpp"
#include "linalg.hpp"
#include "support/all_close.hpp"
#include "support/refuses.hpp"

namespace t2t::qwen3_next_test {

using std::size_t;
using Ids = std::vector<int>;

/// Odd sizes; of every three blocks, the last attends.
static Qwen3NextConfig odd_config(bool tied) {
  Qwen3NextConfig config{};
  config.attention = {.C = 11, .H = 4, .G = 2, .D = 6, .R = 4, .eps = 1e-4f};
  config.delta = {
      .C = 11, .H = 6, .D = 3, .Dv = 5, .W = 3, .chunk = 4, .G = 2, .eps = config.attention.eps};
  config.L = 4, config.V = 13, config.T_max = 90, config.every = 3;
  config.E = 5, config.F = 7, config.F_shared = 9, config.router.k = 2;
  config.theta = 300, config.tied = tied;
  return config;
}
static Qwen3Next model_of(const Qwen3NextConfig& config) {
  Random random(24);
  return draw_qwen3_next(config, random);
}
static Ids some_ids(size_t T) {
  Ids ids;
  for (size_t t = 0; t < T; ++t) ids.push_back(int((5 * t * t + 3 * t + 1) % 13));
  return ids;
}
// Logits are of size 3. Each block has eight steps, whose sums are 30 long at most. The norm of the
// delta rule's outputs may make an error larger: it divides by their root mean square.
static const double near = 0x1p-23 * 30 * 8 * 4 * 3;

/// The whole text at once, by the parts' formulas; the delta layers token by token.
static Tensor<2> logits_by_formula(const Ids& ids, const Qwen3Next& model) {
  const Qwen3NextConfig& config = model.config;
  const size_t T = ids.size(), C = config.attention.C;
  const float eps = config.attention.eps;
  Tensor<2> x = empty(T, C);
  for (size_t t = 0; t < T; ++t) model.embedding.row(size_t(ids[t]), row(x, t));
  for (size_t l = 0; l < config.L; ++l) {
    const Qwen3NextBlock& block = model.blocks[l];
    const Tensor<2> h = rms_norm(x, block.mixer_gain, eps);
    if (l == 2) {
      x += gated_attention(h, block.attention, config.attention,
                           rope_table(T, rope_frequencies(config.attention.R, config.theta)));
    } else {
      DeltaLayerState state = empty_delta_state(config.delta);
      for (size_t t = 0; t < T; ++t)
        xt::view(x, xt::range(t, t + 1)) +=
            delta_layer(rows_of(h, t, 1), block.delta, config.delta, state);
    }
    x += mixture_of_experts(rms_norm(x, block.network_gain, eps),
                            {.router = block.router,
                             .experts = block.experts,
                             .activation = Activation::swiglu,
                             .settings = {.k = 2},
                             .shared = {&block.shared, &block.shared_gate}});
  }
  return matmul_bt(rms_norm(x, model.final_gain, eps), model.output());
}

/// The text in calls of these lengths.
static Tensor<2> in_calls(const Ids& ids, const Qwen3Next& model,
                          const std::vector<size_t>& lengths, size_t chunk) {
  Qwen3NextState state(model.config, ids.size(), chunk);
  Tensor<2> logits = empty(ids.size(), model.config.V);
  size_t t = 0;
  for (const size_t T : lengths) {
    xt::view(logits, xt::range(t, t + T), xt::all()) =
        qwen3_next_logits(std::span(ids).subspan(t, T), model, state);
    t += T;
    CHECK(state.length == t);
  }
  return logits;
}

TEST_CASE("a model is its parts put together, in calls and chunks of any lengths") {
  for (const bool tied : {false, true}) {
    const Qwen3Next model = model_of(odd_config(tied));
    CHECK_NOTHROW(expect_qwen3_next(model));
    const Ids ids = some_ids(11);
    const Tensor<2> want = logits_by_formula(ids, model);
    CHECK(all_close(in_calls(ids, model, {11}, 64), want, near));
    CHECK(all_close(in_calls(ids, model, {11}, 3), want, near));
    CHECK(all_close(in_calls(ids, model, {5, 1, 1, 1, 3}, 64), want, near));
    CHECK(all_close(in_calls(ids, model, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, 1), want, near));
  }
}

TEST_CASE("a later token changes no earlier logits") {
  const Qwen3Next model = model_of(odd_config(true));
  const Ids ids = some_ids(10);
  Ids other = ids;
  other.back() = (ids.back() + 1) % 13;
  const Tensor<2> a = in_calls(ids, model, {10}, 64), b = in_calls(other, model, {10}, 64);
  CHECK(all_close(rows_of(a, 0, 9), rows_of(b, 0, 9), 1e-5));
  CHECK_FALSE(all_close(a, b, 1e-2));
}

TEST_CASE("by hand: what a sequence leaves, by formula and counted") {
  const Qwen3NextConfig config = odd_config(true);
  // Three delta layers: 6·3·5 of the memory and 2 rows of 2·2·3 + 6·5 channels. One layer attends:
  // keys and values of 2 heads of 6.
  CHECK(qwen3_next_state_bytes(config) == 4 * 3 * (90 + 2 * 42));
  CHECK(qwen3_next_cache_bytes(config, 40) == 4 * 40 * 2 * 12);
  CHECK(qwen3_next_cache_bytes(config, 40, 2) == 2 * 40 * 2 * 12);
  CHECK(Qwen3NextState(config, 40).bytes() ==
        qwen3_next_state_bytes(config) + qwen3_next_cache_bytes(config, 40));
  CHECK(Qwen3NextState(config, 90).bytes() - Qwen3NextState(config, 40).bytes() == 50 * 4 * 24);
}

TEST_CASE("by hand: the sizes of the published model keep 75.4 MiB, and 24,576 bytes per token") {
  Qwen3NextConfig config{};
  config.attention = {.C = 2048, .H = 16, .G = 2, .D = 256, .R = 64};
  config.delta = {.C = 2048, .H = 32, .D = 128, .Dv = 128, .G = 16};
  config.L = 48;
  CHECK(config.attention_layers() == 12);
  CHECK(config.attends(3));
  CHECK_FALSE(config.attends(0));
  CHECK_FALSE(config.attends(46));
  CHECK(config.attends(47));
  CHECK(config.delta.channels() == 8192);
  CHECK(qwen3_next_state_bytes(config) == 36 * 4 * (32 * 128 * 128 + 3 * 8192));
  CHECK(qwen3_next_cache_bytes(config, 1, 2) == 24576);
}

TEST_CASE("by hand: the parameters of all blocks") {
  Qwen3NextConfig config = odd_config(false);
  config.L = 3;  // two delta layers, then one that attends
  const size_t delta = 42 * 11 + 42 * 3 + 2 * 6 * 11 + 6 + 6 + 30 * 11 + 5 + 11 * 30;
  const size_t attention = 2 * 24 * 11 + 2 * 12 * 11 + 6 + 6 + 11 * 24;
  const size_t network = 5 * 11 + 5 * 3 * 7 * 11 + 3 * 9 * 11 + 11;
  CHECK(parameter_count(model_of(config)) ==
        2 * 13 * 11 + 11 + 3 * (2 * 11 + network) + 2 * delta + attention);
}

TEST_CASE("what a model cannot run is refused, and the state stays as it was") {
  const Qwen3Next model = model_of(odd_config(true));
  Qwen3NextState state(model.config, 4);
  REFUSES(qwen3_next_logits(Ids{}, model, state), "T, the new tokens: wanted at least 1, got 0");
  REFUSES(qwen3_next_logits(Ids{1, 13}, model, state),
          "ids: token 1 is 13, outside [0, 13), the vocabulary");
  qwen3_next_logits(Ids{1, 2}, model, state);
  REFUSES(qwen3_next_logits(Ids{1, 2, 3}, model, state),
          "state: wanted room for 3 more tokens, got 2 of 4 positions filled");
  CHECK(state.length == 2);
  REFUSES(Qwen3NextState(model.config, 91),
          "S, the positions of the state: wanted 1 to T_max = 90, got 91");
  REFUSES(Qwen3NextState(model.config, 9, 0), "chunk: wanted at least 1, got 0");
}

TEST_CASE("weights of other shapes and impossible configs are refused by name") {
  const auto refused = [](auto change, const char* message) {
    Qwen3Next model = model_of(odd_config(true));
    change(model);
    REFUSES(expect_qwen3_next(model), message);
  };
  refused([](Qwen3Next& m) { m.blocks[2].attention.w_q = zeros(24, 11); },
          "blk.2.attn_q.weight: wanted shape [48, 11], got [24, 11]");
  refused([](Qwen3Next& m) { m.blocks[1].delta.w_z = zeros(29, 11); },
          "block 1: w_z: wanted shape [30, 11], got [29, 11]");
  refused([](Qwen3Next& m) { m.blocks[3].shared_gate = zeros(2, 11); },
          "blk.3.ffn_gate_inp_shexp.weight: wanted shape [1, 11], got [2, 11]");
  refused([](Qwen3Next& m) { m.blocks[3].experts.pop_back(); },
          "experts of block 3: wanted E = 5, got 4");
  refused([](Qwen3Next& m) { m.blocks.pop_back(); }, "blocks: wanted L = 4, got 3");
  refused([](Qwen3Next& m) { m.config.every = 0; },
          "every, the blocks to one that attends: wanted at least 1, got 0");
  refused([](Qwen3Next& m) { m.config.delta.G = 4; },
          "groups: wanted G key and value heads that divide H query heads, got H = 6, G = 4");
  refused([](Qwen3Next& m) { m.config.router.k = 6; },
          "k, the experts of a token: wanted 1 to E = 5, got 6");
  refused([](Qwen3Next& m) { m.config.delta.C = 12; },
          "C of the delta layers: wanted C = 11, got 12");
}

}  // namespace t2t::qwen3_next_test
