// What must be true of the layer's gradients: differences in float64, its parts by hand, and what
// its sums run over.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "13_training/differences.hpp"
#include "24_delta_rule/delta_in_double.hpp"
#include "24_delta_rule/layer/delta_layer_backward.hpp"
#include "24_delta_rule/layer/inputs_backward.hpp"
#include "24_delta_rule/layer/short_convolution.hpp"
#include "support/all_close.hpp"
#include "support/hashed_numbers.hpp"
#include "support/refuses.hpp"

namespace t2t::layer_backward_test {

using std::size_t;

static constexpr double u = 0x1p-24;  // one rounding of a number up to 1

static DeltaLayerWeights some_weights(const DeltaLayerSettings& s) {
  Random random(3);
  DeltaLayerWeights weights = draw_delta_weights(s, random);
  weights.gain = numbers(9, 0.5f, 1, s.Dv);
  return weights;
}

static double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
static double silu(double x) { return x * sigmoid(x); }

/// The layer's x and weights in float64.
struct LayerDoubles {
  Doubles x, w_qkv, conv, w_beta, w_gate, a, b, w_z, gain, w_o;

  LayerDoubles(const Tensor<2>& x, const DeltaLayerWeights& w)
      : x(x),
        w_qkv(w.w_qkv),
        conv(w.conv),
        w_beta(w.w_beta),
        w_gate(w.w_gate),
        a(w.a),
        b(w.b),
        w_z(w.w_z),
        gain(w.gain),
        w_o(w.w_o) {}
};

static Doubles product_bt(const Doubles& x, const Doubles& w) {
  Doubles y(x.rows, w.rows);
  for (size_t t = 0; t < x.rows; ++t)
    for (size_t o = 0; o < w.rows; ++o)
      for (size_t i = 0; i < x.cols; ++i) y(t, o) += x(t, i) * w(o, i);
  return y;
}

static Doubles convolution_of(const Doubles& x, const Doubles& w) {
  Doubles y(x.rows, x.cols);
  for (size_t t = 0; t < x.rows; ++t)
    for (size_t c = 0; c < x.cols; ++c) {
      double sum = 0;
      for (size_t j = 0; j < w.cols; ++j)
        if (t + j + 1 >= w.cols) sum += w(c, j) * x(t + j + 1 - w.cols, c);
      y(t, c) = silu(sum);
    }
  return y;
}

/// Row t of `to` becomes columns [from, from + D) of x, of length `length` or as they are.
static void copy_head(const Doubles& x, size_t from, double length, Doubles& to) {
  for (size_t t = 0; t < x.rows; ++t) {
    double squares = 1e-6;
    for (size_t d = 0; d < to.cols; ++d) squares += x(t, from + d) * x(t, from + d);
    for (size_t d = 0; d < to.cols; ++d)
      to(t, d) = x(t, from + d) * (length > 0 ? length / std::sqrt(squares) : 1);
  }
}

/// The layer from an empty state in float64, by the recurrence: [T, C].
static Doubles layer_in_double(const LayerDoubles& in, const DeltaLayerSettings& s) {
  const size_t T = in.x.rows, H = s.H, D = s.D, Dv = s.Dv, G = s.G > 0 ? s.G : H;
  const Doubles qkv = convolution_of(product_bt(in.x, in.w_qkv), in.conv);
  const Doubles beta = product_bt(in.x, in.w_beta), gate = product_bt(in.x, in.w_gate),
                z = product_bt(in.x, in.w_z);
  Doubles heads(T, H * Dv);
  for (size_t h = 0; h < H; ++h) {
    DeltaDoubles head(made_tokens(T, D, Dv), zeros(D, Dv));
    const size_t g = h / (H / G);  // the head of q and k that it shares
    copy_head(qkv, g * D, 1 / std::sqrt(double(D)), head.q);
    copy_head(qkv, G * D + g * D, 1, head.k);
    copy_head(qkv, 2 * G * D + h * Dv, 0, head.v);
    for (size_t t = 0; t < T; ++t) {
      head.beta(0, t) = sigmoid(beta(t, h));
      head.g(0, t) = -std::exp(in.a(0, h)) * std::log1p(std::exp(gate(t, h) + in.b(0, h)));
    }
    const Doubles o = recurrence_in_double(head, StateRule::correct).out;
    for (size_t t = 0; t < T; ++t) {
      double squares = 0;
      for (size_t e = 0; e < Dv; ++e) squares += o(t, e) * o(t, e);
      for (size_t e = 0; e < Dv; ++e)
        heads(t, h * Dv + e) = o(t, e) / std::sqrt(squares / double(Dv) + s.eps) * in.gain(0, e) *
                               silu(z(t, h * Dv + e));
    }
  }
  return product_bt(heads, in.w_o);
}

static double largest_of(const Tensor<2>& x) {
  double largest = 0;
  for (const float number : x) largest = std::max(largest, double(std::abs(number)));
  return largest;
}

TEST_CASE("each gradient of the layer is that of finite differences in float64, at odd sizes") {
  for (const DeltaLayerSettings& s :
       {DeltaLayerSettings{.C = 6, .H = 2, .D = 3, .Dv = 5, .chunk = 4},
        DeltaLayerSettings{.C = 3, .H = 3, .D = 5, .Dv = 2, .W = 2, .chunk = 16},
        DeltaLayerSettings{.C = 4, .H = 6, .D = 3, .Dv = 2, .chunk = 4, .G = 2, .eps = 1e-3f}}) {
    const size_t T = 9;
    const DeltaLayerWeights w = some_weights(s);
    const Tensor<2> x = numbers(1, 2, 0, T, s.C), dy = numbers(2, 2, 0, T, s.C);
    DeltaLayerPass kept;
    delta_layer_pass(x, w, s, delta_head(s), kept);
    DeltaLayerWeights got = zeros_like(w);
    const Tensor<2> dx = delta_layer_backward(x, w, s, delta_head(s), kept, dy, got);

    LayerDoubles in(x, w);
    const auto equal = [&](const Tensor<2>& gradient, Doubles& of) {
      const Tensor<2> want = by_differences(of, [&] { return dot(dy, layer_in_double(in, s)); });
      // Two divisions by a length may make an error larger: by the norm's root mean square of o,
      // which is above 0.01 here, and by that of a row of q or k.
      CHECK(all_close(gradient, want, 100 * rounding(T * 16, 4 * (1 + largest_of(want)))));
    };
    equal(dx, in.x);
    equal(got.w_qkv, in.w_qkv);
    equal(got.conv, in.conv);
    equal(got.w_beta, in.w_beta);
    equal(got.w_gate, in.w_gate);
    equal(as_matrix(got.a), in.a);
    equal(as_matrix(got.b), in.b);
    equal(got.w_z, in.w_z);
    equal(as_matrix(got.gain), in.gain);
    equal(got.w_o, in.w_o);
  }
}

TEST_CASE("by hand: the gradient of a row's direction has no part along the row") {
  // r = 1/5, ŷ = (0.6, 0.8), and ŷ·dy = 0.6: dx = ((1, 0) − 0.6·ŷ) / 5.
  CHECK(all_close(unit_rows_backward(Tensor<2>{{3, 4}}, Tensor<2>{{1, 0}}, 1e-12f),
                  Tensor<2>{{0.128f, -0.096f}}, 8 * u));
  // Along the row, eps alone is left: x·eps / (25 + eps)^(3/2), less than eps / 25.
  CHECK(all_close(unit_rows_backward(Tensor<2>{{3, 4}}, Tensor<2>{{3, 4}}), zeros(1, 2), 1e-6));
  // A row of zeros passes the gradient on, divided by √eps.
  CHECK(all_close(unit_rows_backward(Tensor<2>{{0, 0}}, Tensor<2>{{1, 2}}, 0.25f),
                  Tensor<2>{{2, 4}}, 0));
}

TEST_CASE("by hand: a convolution hands a token's gradient to itself and to the token before") {
  // The last sum is 2·0 + 3·1, and silu′(3) = σ(3)·(1 + 3·(1 − σ(3))).
  const float slope = float(sigmoid(3) * (1 + 3 * (1 - sigmoid(3))));
  const Tensor<2> x = {{1}, {0}, {1}}, w = {{2, 3}};
  Tensor<2> dw = zeros(1, 2);
  CHECK(all_close(short_convolution_backward(x, w, {{0}, {0}, {1}}, dw),
                  Tensor<2>{{0}, {2 * slope}, {3 * slope}}, 32 * u));
  CHECK(all_close(dw, Tensor<2>{{0, slope}}, 16 * u));
  // The first token's sum is 3·1: the weight of the token before the text gets nothing.
  dw.fill(0);
  CHECK(all_close(short_convolution_backward(x, w, {{1}, {0}, {0}}, dw),
                  Tensor<2>{{3 * slope}, {0}, {0}}, 32 * u));
  CHECK(all_close(dw, Tensor<2>{{0, slope}}, 16 * u));
}

TEST_CASE("a forward pass that keeps its steps is the layer from an empty state") {
  const DeltaLayerSettings s{.C = 6, .H = 2, .D = 3, .Dv = 5, .chunk = 4};
  const DeltaLayerWeights w = some_weights(s);
  const Tensor<2> x = numbers(1, 2, 0, 11, s.C);
  DeltaLayerPass kept;
  DeltaLayerState state = empty_delta_state(s);
  CHECK(all_close(delta_layer_pass(x, w, s, delta_head(s), kept), delta_layer(x, w, s, state), 0));
}

TEST_CASE("gradients add up over calls, and no token's gradient reaches a later one") {
  const DeltaLayerSettings s{.C = 6, .H = 2, .D = 3, .Dv = 5, .chunk = 4};
  const size_t T = 11, last = 6;
  const DeltaLayerWeights w = some_weights(s);
  const Tensor<2> x = numbers(1, 2, 0, T, s.C);
  Tensor<2> dy = zeros(T, s.C);
  dy(last, 2) = 1;
  DeltaLayerPass kept;
  delta_layer_pass(x, w, s, delta_head(s), kept);
  DeltaLayerWeights once = zeros_like(w);
  const Tensor<2> dx = delta_layer_backward(x, w, s, delta_head(s), kept, dy, once);
  CHECK(all_close(rows_of(dx, last + 1, T - last - 1), zeros(T - last - 1, s.C), 0));
  CHECK(largest_of(rows_of(dx, 0, 1)) > 0);

  DeltaLayerWeights twice = once;
  const float* where = twice.gain.data();  // an optimizer holds views
  delta_layer_backward(x, w, s, delta_head(s), kept, dy, twice);
  CHECK(twice.gain.data() == where);
  const auto doubled = [](const Tensor<2>& got, const Tensor<2>& one) {
    CHECK(all_close(got, Tensor<2>(2 * one), rounding(2 * T, 2 * (1 + largest_of(one)))));
  };
  doubled(twice.w_qkv, once.w_qkv);
  doubled(twice.conv, once.conv);
  doubled(twice.w_beta, once.w_beta);
  doubled(twice.w_gate, once.w_gate);
  doubled(as_matrix(twice.a), as_matrix(once.a));
  doubled(as_matrix(twice.b), as_matrix(once.b));
  doubled(twice.w_z, once.w_z);
  doubled(as_matrix(twice.gain), as_matrix(once.gain));
  doubled(twice.w_o, once.w_o);
}

TEST_CASE("gradients of other shapes are refused by name") {
  const DeltaLayerSettings s{.C = 6, .H = 2, .D = 3, .Dv = 5};
  const DeltaLayerWeights w = some_weights(s);
  const Tensor<2> x = numbers(1, 2, 0, 4, s.C);
  DeltaLayerPass kept;
  delta_layer_pass(x, w, s, delta_head(s), kept);
  DeltaLayerWeights gradients = zeros_like(w);
  REFUSES(delta_layer_backward(x, w, s, delta_head(s), kept, zeros(3, 6), gradients),
          "dy: wanted shape [4, 6], got [3, 6]");
  REFUSES(delta_layer_backward(zeros(3, 6), w, s, delta_head(s), kept, zeros(3, 6), gradients),
          "projected: wanted shape [3, 22], got [4, 22]");
  gradients.a = zeros(3);
  REFUSES(delta_layer_backward(x, w, s, delta_head(s), kept, zeros(4, 6), gradients),
          "a: wanted shape [2], got [3]");
  REFUSES(unit_rows_backward(zeros(2, 3), zeros(2, 2)), "dy: wanted shape [2, 3], got [2, 2]");
  REFUSES(unit_rows_backward(zeros(2, 3), zeros(2, 3), 0), "eps: wanted a number above 0, got 0");
  Tensor<2> dw = zeros(2, 3);
  REFUSES(short_convolution_backward(zeros(1, 2), zeros(2, 4), zeros(1, 2), dw),
          "dw: wanted shape [2, 4], got [2, 3]");
}

}  // namespace t2t::layer_backward_test
