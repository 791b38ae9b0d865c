// What must be true of a model whose blocks attend to latents: it is its parts put together, and
// its steps give what the whole text gives.
#include "23_latent/model/latent_model.hpp"

#include <doctest/doctest.h>

#include <span>
#include <vector>

#include "02_normalization/rms_norm.hpp"
#include "13_training/differences.hpp"
#include "linalg.hpp"
#include "support/all_close.hpp"
#include "support/refuses.hpp"

namespace t2t::latent_model_test {

using std::size_t;
using Ids = std::vector<int>;

/// Odd sizes, a dense block and two with experts; q: the rank of the queries or 0.
static LatentConfig odd_config(size_t Q, Scoring scoring) {
  LatentConfig config{};
  config.attention = {.C = 11, .H = 3, .N = 5, .R = 4, .Dv = 6, .K = 7, .Q = Q, .m = 1.25f};
  config.L = 3, config.V = 13, config.T_max = 90, config.F = 9, config.dense = 1;
  config.E = 6, config.F_expert = 5, config.F_shared = 10;
  config.routing = {
      .router = {.k = 2, .scoring = scoring, .normalized = Q > 0}, .groups = 3, .open = 2};
  config.frequencies = rope_frequencies(4, 300);
  config.tied = Q > 0;
  return config;
}
static LatentModel model_of(const LatentConfig& config) {
  Random random(23);
  return draw_latent_model(config, random);
}
static Ids some_ids(size_t T) {
  Ids ids;
  for (size_t t = 0; t < T; ++t) ids.push_back(int((5 * t * t + 3 * t + 1) % 13));
  return ids;
}
// Logits are of size 3. Each block has six steps, whose sums are 15 long at most.
static const double near = 0x1p-23 * 15 * 6 * 3 * 3;

/// The whole text at once, by the parts' formulas.
static Tensor<2> logits_by_formula(const Ids& ids, const LatentModel& model) {
  const LatentConfig& config = model.config;
  const LatentSettings& s = config.attention;
  Tensor<2> x = empty(ids.size(), s.C);
  for (size_t t = 0; t < ids.size(); ++t) model.embedding.row(size_t(ids[t]), row(x, t));
  for (size_t l = 0; l < config.L; ++l) {
    const LatentBlock& block = model.blocks[l];
    x += latent_attention(rms_norm(x, block.attention_gain, s.eps), block.attention, s,
                          rope_table(ids.size(), config.frequencies));
    const Tensor<2> h = rms_norm(x, block.network_gain, s.eps);
    if (l < config.dense) {
      x += feed_forward(h, block.network, Activation::swiglu);
      continue;
    }
    const Routed routed =
        route_in_groups(h, block.router.floats(), config.routing, row(block.bias));
    for (size_t t = 0; t < ids.size(); ++t) {
      const Tensor<2> token = xt::view(h, xt::range(t, t + 1));
      if (config.F_shared > 0)
        xt::view(x, xt::range(t, t + 1)) += feed_forward(token, block.shared, Activation::swiglu);
      for (size_t i = 0; i < config.routing.router.k; ++i)
        xt::view(x, xt::range(t, t + 1)) +=
            routed.weights(t, i) *
            feed_forward(token, block.experts[routed.experts[t * config.routing.router.k + i]],
                         Activation::swiglu);
    }
  }
  return matmul_bt(rms_norm(x, model.final_gain, s.eps), model.output());
}

/// The text in calls of these lengths.
static Tensor<2> in_calls(const Ids& ids, const LatentModel& model,
                          const std::vector<size_t>& lengths, size_t chunk) {
  LatentState state(model.config, ids.size(), chunk);
  Tensor<2> logits = empty(ids.size(), model.config.V);
  size_t t = 0;
  for (const size_t T : lengths) {
    xt::view(logits, xt::range(t, t + T), xt::all()) =
        latent_logits(std::span(ids).subspan(t, T), model, state);
    t += T;
    CHECK(state.length() == t);
  }
  return logits;
}

TEST_CASE("a model is its parts put together, in calls and chunks of any lengths") {
  for (const size_t Q : {0, 8}) {
    CAPTURE(Q);
    LatentConfig config = odd_config(Q, Q > 0 ? Scoring::sigmoid : Scoring::softmax);
    for (const size_t F_shared : {10, 0}) {
      config.F_shared = F_shared;
      const LatentModel model = model_of(config);
      CHECK_NOTHROW(expect_latent_model(model));
      const Ids ids = some_ids(10);
      const Tensor<2> want = logits_by_formula(ids, model);
      CHECK(all_close(in_calls(ids, model, {10}, 64), want, near));
      CHECK(all_close(in_calls(ids, model, {10}, 3), want, near));
      CHECK(all_close(in_calls(ids, model, {4, 1, 1, 1, 3}, 64), want, near));
      CHECK(all_close(in_calls(ids, model, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, 1), want, near));
    }
  }
}

TEST_CASE("a later token changes no earlier logits") {
  const LatentModel model = model_of(odd_config(8, Scoring::sigmoid));
  const Ids ids = some_ids(10);
  Ids other = ids;
  other.back() = (ids.back() + 1) % 13;
  const Tensor<2> a = in_calls(ids, model, {10}, 64), b = in_calls(other, model, {10}, 64);
  CHECK(all_close(rows_of(a, 0, 9), rows_of(b, 0, 9), 1e-6));
  CHECK_FALSE(all_close(a, b, 1e-2));
}

TEST_CASE("a model of dense blocks needs nothing of experts") {
  LatentConfig config = odd_config(0, Scoring::softmax);
  config.dense = 3, config.E = 0, config.F_expert = 0, config.F_shared = 0, config.routing = {};
  const LatentModel model = model_of(config);
  const Ids ids = some_ids(6);
  CHECK(all_close(in_calls(ids, model, {5, 1}, 64), logits_by_formula(ids, model), near));
  const size_t block = latent_parameters(config.attention) + 2 * 11 + 3 * 9 * 11;
  CHECK(parameter_count(model) == 3 * block + 11 + 2 * 13 * 11);
}

TEST_CASE("what a model cannot run is refused, and the caches stay as they were") {
  const LatentModel model = model_of(odd_config(8, Scoring::sigmoid));
  LatentState state(model.config, 4);
  REFUSES(latent_logits(Ids{}, model, state), "T, the new tokens: wanted at least 1, got 0");
  REFUSES(latent_logits(Ids{1, 13}, model, state),
          "ids: token 1 is 13, outside [0, 13), the vocabulary");
  latent_logits(Ids{1, 2}, model, state);
  REFUSES(latent_logits(Ids{1, 2, 3}, model, state),
          "state: wanted room for 3 more tokens, got 2 of 4 positions filled");
  CHECK(state.length() == 2);
  REFUSES(LatentState(model.config, 91),
          "S, the positions of the state: wanted 1 to T_max = 90, got 91");
  REFUSES(LatentState(model.config, 0),
          "S, the positions of the state: wanted 1 to T_max = 90, got 0");
}

TEST_CASE("weights of other shapes are refused by name") {
  const auto refused = [](auto change, const char* message) {
    LatentModel model = model_of(odd_config(8, Scoring::sigmoid));
    change(model);
    REFUSES(expect_latent_model(model), message);
  };
  refused([](LatentModel& m) { m.blocks[1].attention.w_kvb = zeros(32, 7); },
          "blk.1.attn_kv_b.weight: wanted shape [33, 7], got [32, 7]");
  refused([](LatentModel& m) { m.blocks[2].bias = xt::ones<float>({5}); },
          "blk.2.exp_probs_b.bias: wanted shape [6], got [5]");
  refused([](LatentModel& m) { m.blocks[2].experts[4].w_up = zeros(5, 12); },
          "blk.2.ffn_up_exps.weight: wanted shape [5, 11], got [5, 12]");
  refused([](LatentModel& m) { m.blocks[2].experts.pop_back(); },
          "experts of block 2: wanted 6, got 5");
  refused([](LatentModel& m) { m.blocks.pop_back(); }, "blocks: wanted L = 3, got 2");
}

TEST_CASE("impossible configs are refused") {
  const auto refused = [](auto change, const char* message) {
    LatentConfig config = odd_config(8, Scoring::sigmoid);
    change(config);
    REFUSES(expect_latent_config(config), message);
  };
  refused([](LatentConfig& c) { c.dense = 4; },
          "dense, the blocks without experts: wanted at most L = 3, got 4");
  refused([](LatentConfig& c) { c.F = 0; },
          "F, the width of a dense block's network: wanted at least 1, got 0");
  refused([](LatentConfig& c) { c.frequencies.pop_back(); }, "frequencies: wanted R/2 = 2, got 1");
  refused([](LatentConfig& c) { c.frequencies[1] = 0; },
          "a frequency: wanted a finite number above 0, got 0");
  refused([](LatentConfig& c) { c.E = 0; }, "E, the experts: wanted at least 1, got 0");
  refused([](LatentConfig& c) { c.F_expert = 0; },
          "F_expert, the width of an expert: wanted at least 1, got 0");
  refused([](LatentConfig& c) { c.routing.groups = 4; },
          "groups: wanted a divisor of E = 6, got 4");
  refused([](LatentConfig& c) { c.V = 0; }, "V, the vocabulary: wanted at least 1, got 0");
}

}  // namespace t2t::latent_model_test
