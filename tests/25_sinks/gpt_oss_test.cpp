// What must be true of gpt-oss's parts: the gate, the experts, YaRN, sinks from a cache, the model.
#include "25_sinks/gpt_oss/gpt_oss.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "25_sinks/fast/sink_rows.hpp"
#include "25_sinks/in_double.hpp"
#include "25_sinks/sink_attention.hpp"
#include "25_sinks/tiny_gpt_oss.hpp"
#include "rows.hpp"
#include "support/all_close.hpp"
#include "support/hashed_numbers.hpp"
#include "support/refuses.hpp"

namespace t2t::gpt_oss_test {

using std::size_t;

static double sigmoid(double z) { return 1 / (1 + std::exp(-z)); }

TEST_CASE("by hand: the gate is clamped above, the linear half on both sides, and 1 is added") {
  const double bound = 60 * 8 * 0x1p-24;
  const auto is = [&](float gate, float up, double want) {
    CHECK(std::abs(double(clamped_gate(gate, up)) - want) < bound);
  };
  is(0, 5, 0);
  is(1, 0, 0.845797);      // sigmoid(1.702)
  is(1, 2, 3 * 0.845797);  // up + 1
  is(1, -1, 0);
  is(2, 0.5f, 3 * sigmoid(3.404));
  is(7, 0, 7 * sigmoid(11.914));
  is(50, 0, 7 * sigmoid(11.914));  // clamped from above
  is(-50, 3, 0);                   // not from below, where it is 0 anyway
  is(-1, 0, -sigmoid(-1.702));
  is(1, 50, 8 * sigmoid(1.702));    // 7 + 1
  is(1, -50, -6 * sigmoid(1.702));  // −7 + 1
  CHECK(clamped_gate(-1e30f, 0) == 0);
  CHECK(std::isnan(clamped_gate(std::numeric_limits<float>::quiet_NaN(), 0)));
}

/// Weights from hashed numbers. Gates and ups pass the limit here and there.
static ClampedExperts experts(size_t E, size_t k, size_t C, size_t F) {
  return hashed_experts(E, k, C, F, 50);
}

/// The experts in float64. The choice is that of the largest scores.
static Tensor<2> in_double(const Tensor<2>& x, const ClampedExperts& mixture) {
  const size_t T = x.shape(0), C = x.shape(1), E = mixture.experts.size(), k = mixture.chosen;
  Tensor<2> y = empty(T, C);
  const auto product = [](const Weight& w, size_t r, const auto& v) {
    double sum = 0;
    for (size_t c = 0; c < w.cols(); ++c) sum += double(w.floats()(r, c)) * double(v[c]);
    return sum;
  };
  for (size_t t = 0; t < T; ++t) {
    const ConstRow token = row(x, t);
    std::vector<std::pair<double, size_t>> scores;
    for (size_t e = 0; e < E; ++e)
      scores.emplace_back(-product(mixture.router, e, token) - double(mixture.b_router(e)), e);
    std::ranges::sort(scores);
    double sum = 0;
    for (size_t i = 0; i < k; ++i) sum += std::exp(-scores[i].first);
    std::vector<double> out(C);
    for (size_t i = 0; i < k; ++i) {
      const ClampedExpert& expert = mixture.experts[scores[i].second];
      std::vector<double> hidden(expert.w_up.rows());
      for (size_t f = 0; f < hidden.size(); ++f) {
        const double gate =
            std::min(product(expert.w_gate, f, token) + double(expert.b_gate(f)), 7.0);
        const double up =
            std::clamp(product(expert.w_up, f, token) + double(expert.b_up(f)), -7.0, 7.0);
        hidden[f] = gate * sigmoid(1.702 * gate) * (up + 1);
      }
      for (size_t c = 0; c < C; ++c)
        out[c] += std::exp(-scores[i].first) / sum *
                  (product(expert.w_down, c, hidden) + double(expert.b_down(c)));
    }
    for (size_t c = 0; c < C; ++c) y(t, c) = float(out[c]);
  }
  return y;
}

/// An element sums F hidden values of up to 56, each a sum of C products of up to 8, and k experts.
static double experts_bound(size_t C, size_t F) {
  return 56 * double(F) * (rounding(C, 8) + rounding(F, 1));
}

TEST_CASE("the formula and the rows equal the experts in float64, at odd sizes") {
  const struct {
    size_t T, E, k, C, F;
  } sizes[] = {
      {1, 1, 1, 1, 1}, {5, 4, 2, 7, 3}, {9, 5, 5, 4, 6}, {17, 7, 3, 11, 5}, {3, 32, 4, 65, 33}};
  for (const auto& [T, E, k, C, F] : sizes) {
    const ClampedExperts mixture = experts(E, k, C, F);
    const Tensor<2> x = numbers(7, 4, 0, T, C), want = in_double(x, mixture);
    CHECK(all_close(clamped_experts(x, mixture), want, experts_bound(C, F)));
    ClampedScratch scratch(T + 2, mixture, C);
    Tensor<2> y = numbers(8, 1, 0, T, C);
    clamped_experts_rows(x, mixture, scratch, y);
    CHECK(all_close(y, want, experts_bound(C, F)));
  }
}

TEST_CASE("by hand: softmax of the chosen scores alone, with the router's bias in them") {
  // Scores 0, ln 3 and ln 2 come from the bias alone. The chosen two weigh 3/5 and 2/5; expert e
  // gives e, since its matrices are 0 and its bias is e.
  ClampedExperts mixture = experts(3, 2, 1, 1);
  mixture.router = Tensor<2>(zeros(3, 1));
  mixture.b_router = {0, std::log(3.0f), std::log(2.0f)};
  for (size_t e = 0; e < 3; ++e) {
    mixture.experts[e].w_down = Tensor<2>(zeros(1, 1));
    mixture.experts[e].b_down = {float(e)};
  }
  const Tensor<2> x = {{2}}, want = {{1 * 0.6f + 2 * 0.4f}};
  CHECK(all_close(clamped_experts(x, mixture), want, 16 * 0x1p-24));
  Tensor<2> y = empty(1, 1);
  ClampedScratch scratch(1, mixture, 1);
  clamped_experts_rows(x, mixture, scratch, y);
  CHECK(all_close(y, want, 16 * 0x1p-24));
}

TEST_CASE("a token's result does not depend on the tokens beside it") {
  const ClampedExperts mixture = experts(6, 2, 8, 5);
  const Tensor<2> x = numbers(9, 4, 0, 12, 8);
  Tensor<2> all = empty(12, 8), one = empty(1, 8), want = empty(1, 8);
  ClampedScratch scratch(12, mixture, 8);
  clamped_experts_rows(x, mixture, scratch, all);
  for (size_t t = 0; t < 12; ++t) {
    clamped_experts_rows(ConstMatrix(x).rows_from(t, 1), mixture, scratch, one);
    std::ranges::copy(row(std::as_const(all), t), row(want, 0).begin());
    CHECK(all_close(one, want, experts_bound(8, 5)));
  }
}

TEST_CASE("experts that do not fit, scores that are not finite and too little room are refused") {
  ClampedExperts mixture = experts(3, 2, 4, 5);
  Tensor<2> x = zeros(2, 4), y = zeros(2, 4);
  ClampedScratch scratch(1, mixture, 4);
  REFUSES(clamped_experts_rows(x, mixture, scratch, y),
          "T, the rows of x: wanted at most the 1 that the scratch is made for, got 2");
  x(1, 2) = std::numeric_limits<float>::infinity();
  REFUSES(clamped_experts(x, mixture), "scores of token 1: wanted finite numbers, got others");
  mixture.experts[1].b_up = zeros(4);
  REFUSES(clamped_experts(x, mixture), "expert 1: b_up: wanted shape [5], got [4]");
  mixture = experts(3, 4, 4, 5);
  REFUSES(clamped_experts(x, mixture), "k, the experts of a token: wanted 1 to E = 3, got 4");
  mixture.experts.clear();
  REFUSES(clamped_experts(x, mixture), "experts: wanted at least 1, got 0");
}

TEST_CASE("by hand: gpt-oss's YaRN begins at pair 8.09 and ends at 17.40, not rounded") {
  const YarnScaling yarn = {.factor = 32, .fast = 32, .slow = 1, .trained = 4096};
  const Frequencies plain = rope_frequencies(64, 150000), ours = unrounded_yarn(64, 150000, yarn);
  const Frequencies rounded = yarn_scaling(64, 150000, yarn);
  const double first = 8.092779115512402, last = 17.39802450158856;
  for (size_t i = 0; i < 32; ++i) {
    const double slowed = std::clamp((double(i) - first) / (last - first), 0.0, 1.0);
    CHECK(std::abs(ours[i] / plain[i] - (1 - slowed + slowed / 32)) < 1e-12);
  }
  CHECK(ours[8] == plain[8]);
  CHECK(ours[9] > rounded[9]);    // 0.097 of the way instead of 0.1
  CHECK(ours[17] < rounded[17]);  // 0.957 instead of 0.9
  CHECK_THROWS_AS(unrounded_yarn(64, 150000, {.factor = 0.5}), std::invalid_argument);
}

TEST_CASE("sinks from a cache equal the formula, for windows, groups and another factor") {
  const struct {
    size_t T, S, H, G, D;
  } sizes[] = {
      {1, 1, 1, 1, 1}, {5, 9, 4, 2, 6}, {1, 70, 6, 3, 5}, {33, 40, 8, 8, 4}, {2, 150, 64, 8, 64}};
  for (const auto& [T, S, H, G, D] : sizes)
    for (const Mask mask : {Mask::causal, Mask::sliding(3), Mask::sliding(128), Mask::none}) {
      const Tensor<2> q = numbers(1, 2, 0, T, H * D), k = numbers(2, 2, 0, S, G * D);
      const Tensor<2> v = numbers(3, 2, 0, S, G * D);
      const Tensor<1> sinks = numbers(4, 6, 0, H);
      Tensor<2> out = empty(T, H * D), scores = empty(thread_count(), H / G * S);
      sink_attention_rows(q, side_by_side(k, v, G), mask, row(sinks), out, scores);
      CHECK(all_close(out, grouped_sink_attention(q, k, v, sinks, G, mask), 2 * sink_bound(S, D)));
      // A factor m/√D is that of queries m times as large.
      const float m = 1.8f;
      Tensor<2> scaled = empty(T, H * D);
      sink_attention_rows(q, side_by_side(k, v, G), {mask, m / std::sqrt(float(D))}, row(sinks),
                          scaled, scores);
      const Tensor<2> larger = m * q;
      CHECK(all_close(scaled, grouped_sink_attention(larger, k, v, sinks, G, mask),
                      4 * sink_bound(S, D)));
    }
}

TEST_CASE("sinks of another number, of no score, and too little room are refused") {
  const Tensor<2> q = zeros(2, 4), k = zeros(3, 4);
  Tensor<2> out = zeros(2, 4), scores = empty(thread_count(), 5);
  const KeyValueHeads heads = side_by_side(k, k, 1);
  const Tensor<1> two = zeros(2), one = zeros(1);
  REFUSES(sink_attention_rows(q, heads, Mask::causal, row(two), out, scores),
          "sinks: wanted shape [1], got [2]");
  Tensor<2> few = empty(thread_count(), 2);
  CHECK_THROWS_AS(sink_attention_rows(q, heads, Mask::causal, row(one), out, few),
                  std::invalid_argument);
  const BlockSettings layer{.C = 4, .H = 1, .G = 1, .D = 4, .F = 0};
  const std::vector<BlockSettings> layers = {layer, layer};
  REFUSES(sink_kernel(layers, {one}, 8), "sinks, of each layer: wanted L = 2, got 1");
  REFUSES(sink_kernel(layers, {one, two}, 8), "layer 1: sinks: wanted shape [1], got [2]");
  const Tensor<1> nan = {std::numeric_limits<float>::quiet_NaN()};
  CHECK_THROWS_AS(sink_kernel(layers, {one, nan}, 8), std::invalid_argument);
}

TEST_CASE(
    "the first of two layers sees a window, and scores grow by the square of YaRN's magnitude") {
  const Config config =
      gpt_oss_config({.C = 16, .H = 4, .G = 2, .D = 64, .L = 4, .V = 9, .T_max = 10, .window = 3});
  for (size_t l = 0; l < 4; ++l) CHECK(settings_of(config, l).window == (l % 2 == 0 ? 3 : 0));
  const double m = 0.1 * std::log(32.0) + 1;  // 1.3466
  CHECK(double(config.block.score_scale) == doctest::Approx(m * m / 8).epsilon(1e-6));
  const Config plain = gpt_oss_config(
      {.C = 16, .H = 4, .G = 2, .D = 64, .L = 1, .V = 9, .T_max = 10, .yarn = {.factor = 1}});
  CHECK(plain.block.score_scale == 0);
  CHECK(plain.block.frequencies.empty());
}

TEST_CASE("a model in steps gives what one pass gives, past its windows and for two sequences") {
  const GptOss gpt_oss = tiny_gpt_oss();
  const size_t V = gpt_oss.model.config().V;
  std::vector<int> ids;
  for (size_t t = 0; t < 15; ++t) ids.push_back(int(11 * t + 3) % int(V));
  ModelState once = gpt_oss_state(gpt_oss, 20), steps = gpt_oss_state(gpt_oss, 20);
  Tensor<2> want = empty(15, V), got = empty(15, V);
  forward_all(gpt_oss.model, once, ids, want);
  size_t from = 0;
  for (const size_t step : {4, 1, 1, 6, 1, 2}) {
    forward_all(gpt_oss.model, steps, std::span(ids).subspan(from, step),
                Matrix(got).rows_from(from, step));
    from += step;
  }
  CHECK(all_close(got, want, 1e-4));
  ModelState chunks = gpt_oss_state(gpt_oss, 20, {.chunk = 3, .sequences = 2});
  const MoreTokens more[] = {{1, std::span(ids).first(4), 4}, {0, ids, 15}};
  Tensor<2> both = empty(19, V);
  forward(gpt_oss.model, chunks, more, both);
  CHECK(all_close(Tensor<2>(xt::view(both, xt::range(4, 19))), want, 1e-4));
}

TEST_CASE("each of a layer's extra tensors changes the logits") {
  const std::vector<int> ids = {1, 5, 2, 8, 3, 3, 7};
  const auto logits_with = [&](auto change) {
    GptOss gpt_oss = tiny_gpt_oss();
    change(gpt_oss.layers[1]);
    ModelState state = gpt_oss_state(gpt_oss, 8);
    Tensor<1> logits = empty(gpt_oss.model.config().V);
    forward(gpt_oss.model, state, ids, row(logits));
    return logits;
  };
  const Tensor<1> as_it_is = logits_with([](GptOssLayer&) {});
  CHECK_FALSE(all_close(logits_with([](GptOssLayer& l) { l.sinks += 2; }), as_it_is, 1e-4));
  CHECK_FALSE(all_close(logits_with([](GptOssLayer& l) { l.b_o(2) += 1; }), as_it_is, 1e-4));
  CHECK_FALSE(
      all_close(logits_with([](GptOssLayer& l) { l.experts.b_router(0) += 5; }), as_it_is, 1e-4));
}

TEST_CASE("layers that do not fit the model are refused with their number") {
  GptOss gpt_oss = tiny_gpt_oss();
  const auto state = [&] { return gpt_oss_state(gpt_oss, 8); };
  gpt_oss.layers[1].sinks = zeros(3);
  REFUSES(state(), "layer 1: sinks: wanted shape [4], got [3]");
  gpt_oss = tiny_gpt_oss();
  gpt_oss.layers[0].experts.chosen = 9;
  REFUSES(state(), "layer 0: k, the experts of a token: wanted 1 to E = 4, got 9");
  gpt_oss = tiny_gpt_oss();
  gpt_oss.layers[1].experts.chosen = 1;
  REFUSES(state(), "layer 1: wanted the E, F and k of layer 0");
  gpt_oss = tiny_gpt_oss();
  gpt_oss.layers.pop_back();
  REFUSES(state(), "layers: wanted L = 2, got 1");
}

}  // namespace t2t::gpt_oss_test
