// What must be true of the layer around the delta rule: its convolution, its gates and its state.
#include <doctest/doctest.h>

#include <cmath>
#include <tuple>
#include <vector>

#include "13_training/differences.hpp"
#include "24_delta_rule/layer/delta_layer.hpp"
#include "24_delta_rule/layer/short_convolution.hpp"
#include "linalg.hpp"
#include "support/all_close.hpp"
#include "support/hashed_numbers.hpp"
#include "support/refuses.hpp"

namespace t2t::delta_layer_test {

using std::size_t;

static constexpr double u = 0x1p-24;  // one rounding of a number up to 1

static DeltaLayerWeights some_weights(const DeltaLayerSettings& s) {
  Random random(3);
  DeltaLayerWeights weights = draw_delta_weights(s, random);
  weights.gain = numbers(9, 0.5f, 1, s.Dv);
  return weights;
}

TEST_CASE("by hand: a convolution of two tokens, which begins with zeros and keeps a row") {
  // silu(z) = z / (1 + e^(−z)) of 3·1, 2·1 + 3·0 and 2·0 + 3·1.
  const auto silu = [](float z) { return z / (1 + std::exp(-z)); };
  Tensor<2> kept = zeros(1, 1);
  const Tensor<2> w = {{2, 3}}, x = {{1}, {0}, {1}};
  CHECK(
      all_close(short_convolution(x, w, kept), Tensor<2>{{silu(3)}, {silu(2)}, {silu(3)}}, 16 * u));
  CHECK(all_close(kept, Tensor<2>{{1}}, 0));
  CHECK(all_close(short_convolution({{0}}, w, kept), Tensor<2>{{silu(2)}}, 16 * u));
}

TEST_CASE("in calls of any lengths, a convolution gives what it gives at once") {
  const size_t T = 11, channels = 5, W = 4;
  const Tensor<2> x = numbers(1, 2, 0, T, channels), w = numbers(2, 2, 0, channels, W);
  Tensor<2> kept = zeros(W - 1, channels);
  const Tensor<2> want = short_convolution(x, w, kept);
  const Tensor<2> last = rows_of(x, T - 3, 3);
  CHECK(all_close(kept, last, 0));
  for (const std::vector<size_t>& lengths :
       {std::vector<size_t>{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, {2, 3, 6}, {10, 1}}) {
    Tensor<2> rows = zeros(W - 1, channels);
    size_t t = 0;
    for (const size_t count : lengths) {
      CHECK(
          all_close(short_convolution(rows_of(x, t, count), w, rows), rows_of(want, t, count), 0));
      t += count;
    }
    CHECK(all_close(rows, last, 0));
  }
}

TEST_CASE("by hand: the inputs of the rule. q has length 1/√D, β and g are a sigmoid and a decay") {
  const DeltaLayerSettings s{.C = 1, .H = 2, .D = 4, .Dv = 1};
  DeltaLayerWeights weights = some_weights(s);
  weights.w_beta = Tensor<2>{{0}, {std::log(3.f)}};
  weights.w_gate = Tensor<2>{{0}, {2}};
  weights.a = Tensor<1>{0, std::log(2.f)};
  weights.b = Tensor<1>{0, -2};
  // q of both heads, k of both, v of both.
  const Tensor<2> qkv = {{9, 9, 9, 9, 2, 2, 2, 2, 9, 9, 9, 9, 0, 3, 0, 4, 9, 7}}, x = {{1}};
  const DeltaTokens tokens = delta_tokens(x, qkv, weights, s, 1);
  CHECK(all_close(tokens.q, Tensor<2>{{0.25f, 0.25f, 0.25f, 0.25f}}, 1e-6));  // eps is 1e-6 of 16
  CHECK(all_close(tokens.k, Tensor<2>{{0, 0.6f, 0, 0.8f}}, 1e-6));
  CHECK(all_close(tokens.v, Tensor<2>{{7}}, 0));
  CHECK(tokens.beta(0) == doctest::Approx(0.75));             // 1 / (1 + e^(−ln 3))
  CHECK(tokens.g(0) == doctest::Approx(-2 * std::log(2.0)));  // −2·softplus(0)
  const DeltaTokens first = delta_tokens(x, qkv, weights, s, 0);
  CHECK(first.beta(0) == doctest::Approx(0.5));
  CHECK(first.g(0) == doctest::Approx(-std::log(2.0)));
  CHECK(all_close(first.v, Tensor<2>{{9}}, 0));
}

TEST_CASE("by hand: neighbouring heads of v share a head of q and k, and have a gate each") {
  const DeltaLayerSettings s{.C = 1, .H = 4, .D = 1, .Dv = 1, .G = 2};
  DeltaLayerWeights weights = some_weights(s);
  weights.w_beta = Tensor<2>{{0}, {std::log(3.f)}, {0}, {0}};
  const Tensor<2> qkv = {{2, -2, -3, 3, 4, 5, 6, 7}};  // two of q, two of k, four of v
  for (const auto& [h, sign, v, beta] :
       {std::tuple{0, 1, 4, 0.5}, {1, 1, 5, 0.75}, {2, -1, 6, 0.5}, {3, -1, 7, 0.5}}) {
    const DeltaTokens tokens = delta_tokens({{1}}, qkv, weights, s, size_t(h));
    CHECK(tokens.q(0, 0) == doctest::Approx(sign));
    CHECK(tokens.k(0, 0) == doctest::Approx(-sign));
    CHECK(tokens.v(0, 0) == float(v));
    CHECK(tokens.beta(0) == doctest::Approx(beta));
  }
  CHECK(s.channels() == 8);
  CHECK(empty_delta_state(s).memory.shape(0) == 4);
}

TEST_CASE("the layer is its parts: convolution, rule, norm of each head, gate, projection") {
  const DeltaLayerSettings s{.C = 6, .H = 2, .D = 3, .Dv = 5, .chunk = 4};
  const size_t T = 9;
  const DeltaLayerWeights w = some_weights(s);
  const Tensor<2> x = numbers(1, 2, 0, T, s.C);
  Tensor<2> kept = zeros(s.W - 1, s.channels());
  const Tensor<2> qkv = short_convolution(matmul_bt(x, w.w_qkv), w.conv, kept);
  Tensor<2> heads = empty(T, s.H * s.Dv);
  for (size_t h = 0; h < s.H; ++h) {
    Tensor<2> memory = zeros(s.D, s.Dv);
    const Tensor<2> o = delta_recurrence(delta_tokens(x, qkv, w, s, h), StateRule::correct, memory);
    for (size_t t = 0; t < T; ++t) {
      double squares = 0;
      for (size_t e = 0; e < s.Dv; ++e) squares += double(o(t, e)) * o(t, e);
      for (size_t e = 0; e < s.Dv; ++e) {
        double z = 0;
        for (size_t c = 0; c < s.C; ++c) z += double(x(t, c)) * w.w_z(h * s.Dv + e, c);
        heads(t, h * s.Dv + e) = float(o(t, e) / std::sqrt(squares / double(s.Dv) + 1e-6) *
                                       w.gain(e) * z / (1 + std::exp(-z)));
      }
    }
  }
  DeltaLayerState state = empty_delta_state(s);
  // The norm may make an error of the rule's outputs larger: it divides by their root mean square,
  // which is above 0.01 here.
  CHECK(all_close(delta_layer(x, w, s, state), matmul_bt(heads, w.w_o), 100 * rounding(T * 16, 4)));
  CHECK(all_close(state.kept, kept, 0));
}

TEST_CASE("a text in calls of any lengths gets what it gets in one, and texts do not mix") {
  const DeltaLayerSettings s{.C = 6, .H = 2, .D = 3, .Dv = 5, .chunk = 4};
  const size_t T = 11;
  const DeltaLayerWeights w = some_weights(s);
  const Tensor<2> x = numbers(1, 2, 0, T, s.C), y = numbers(2, 2, 0, T, s.C);
  DeltaLayerState whole = empty_delta_state(s);
  const Tensor<2> want = delta_layer(x, w, s, whole);
  const double near = 100 * rounding(T * 16, 4);
  for (const std::vector<size_t>& lengths :
       {std::vector<size_t>{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, {6, 1, 1, 3}, {2, 9}}) {
    DeltaLayerState state = empty_delta_state(s), other = empty_delta_state(s);
    size_t t = 0;
    for (const size_t count : lengths) {
      CHECK(
          all_close(delta_layer(rows_of(x, t, count), w, s, state), rows_of(want, t, count), near));
      delta_layer(rows_of(y, t, count), w, s, other);  // another text's
      t += count;
    }
    CHECK(all_close(state.memory, whole.memory, near));
  }
}

TEST_CASE("by hand: the state's bytes do not depend on the text") {
  const DeltaLayerSettings s{.C = 8, .H = 2, .D = 3, .Dv = 5};
  // 2·3·5 of the memory and 3 rows of 2·(3 + 3 + 5) channels, in 4 bytes, for 2 layers.
  CHECK(delta_state_bytes(2, s, 4) == 2 * 4 * (30 + 66));
  const DeltaLayerState state = empty_delta_state(s);
  CHECK(state.memory.size() + state.kept.size() == 96);
}

TEST_CASE("sizes and shapes that can't be are refused by name") {
  const DeltaLayerSettings right{.C = 6, .H = 2, .D = 3, .Dv = 5};
  DeltaLayerSettings s = right;
  s.H = 0;
  REFUSES(expect_delta_layer(s), "H, the heads: wanted at least 1, got 0");
  s = right, s.W = 0;
  REFUSES(empty_delta_state(s), "W, the tokens of a convolution: wanted at least 1, got 0");
  s = right, s.G = 3;
  REFUSES(expect_delta_layer(s),
          "groups: wanted G key and value heads that divide H query heads, got H = 2, G = 3");
  s = right, s.eps = 0;
  REFUSES(expect_delta_layer(s), "eps: wanted a finite number above 0, got 0");
  s = right, s.chunk = 0;
  REFUSES(expect_delta_layer(s), "chunk, the tokens of a chunk: wanted at least 1, got 0");
  DeltaLayerWeights w = some_weights(right);
  DeltaLayerState state = empty_delta_state(right);
  REFUSES(delta_layer(zeros(2, 5), w, right, state), "x: wanted shape [2, 6], got [2, 5]");
  Tensor<2> kept = zeros(2, 5);
  REFUSES(short_convolution(zeros(1, 5), zeros(5, 4), kept),
          "kept: wanted shape [3, 5], got [2, 5]");
  REFUSES(delta_tokens(zeros(1, 6), zeros(1, 22), w, right, 2), "h, a head: wanted below H, got 2");
  w.gain = zeros(4);
  REFUSES(delta_layer(zeros(2, 6), w, right, state), "gain: wanted shape [5], got [4]");
}

}  // namespace t2t::delta_layer_test
