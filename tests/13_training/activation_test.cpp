// What must be true of the backward passes of activations, alone and in a gate.
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "13_training/backward/activation_backward.hpp"
#include "13_training/differences.hpp"
#include "support/all_close.hpp"
#include "support/hashed_numbers.hpp"
#include "support/refuses.hpp"

namespace t2t::activation_test {

using std::size_t;

static constexpr double u = 0x1p-24;  // one rounding of a number up to 1

/// What the activation applies to its one number, or to its gate.
static double value(Activation activation, double x) {
  const double pi = 3.14159265358979323846;
  switch (activation) {
    case Activation::relu:
    case Activation::reglu:
      return x > 0 ? x : 0;
    case Activation::gelu:
    case Activation::geglu:
      return x / 2 * (1 + std::erf(x / std::sqrt(2.0)));
    case Activation::gelu_tanh:
    case Activation::geglu_tanh:
      return x / 2 * (1 + std::tanh(std::sqrt(2 / pi) * (x + 0.044715 * x * x * x)));
    case Activation::silu:
    case Activation::swiglu:
      return x / (1 + std::exp(-x));
    case Activation::glu:
      break;
  }
  return 1 / (1 + std::exp(-x));
}
static const std::vector<Activation> alone = {Activation::relu, Activation::gelu,
                                              Activation::gelu_tanh, Activation::silu};
static const std::vector<Activation> with_gate = {Activation::glu, Activation::reglu,
                                                  Activation::geglu, Activation::geglu_tanh,
                                                  Activation::swiglu};

/// The derivative at each x as the kernel has it: it turns dy = 1 into dx, or dy = up = 1 into
/// dgate.
static Tensor<2> derivative_by_rows(Activation activation, const Tensor<2>& x) {
  Tensor<2> dy = xt::ones_like(x), dgate = empty(x.shape(0), x.shape(1));
  if (is_gated(activation))
    gated_backward_rows(activation, x, Tensor<2>(xt::ones_like(x)), dy, dgate);
  else
    activate_backward_rows(activation, x, dy);
  return is_gated(activation) ? dgate : dy;
}

TEST_CASE("by hand: derivatives at 0, and of silu at ln 3") {
  // σ(ln 3) = 3/4, so silu's derivative there is 3/4 · (1 + ln 3 / 4), and the sigmoid's 3/16.
  using enum Activation;
  const Tensor<2> x = {{-1, 0, std::log(3.0f), 2}};
  for (const auto derivative : {activation_derivative, derivative_by_rows}) {
    for (const Activation activation : {relu, reglu})
      CHECK(all_close(derivative(activation, x), Tensor<2>{{0, 0, 1, 1}}, 0));
    for (const Activation activation : {gelu, gelu_tanh, silu, geglu, geglu_tanh, swiglu})
      CHECK(derivative(activation, x)(0, 1) == 0.5f);
    CHECK(std::abs(derivative(silu, x)(0, 2) - 0.955990) < 1e-6);
    CHECK(std::abs(derivative(swiglu, x)(0, 2) - 0.955990) < 1e-6);
    CHECK(derivative(glu, x)(0, 1) == 0.25f);
    CHECK(std::abs(derivative(glu, x)(0, 2) - 0.1875) <= 4 * u);
  }
}

TEST_CASE("by hand: what each factor of swiglu and reglu gets") {
  // reglu with gate 3, up 5 and dy 2: dup = 2·3, dgate = 2·5. A closed gate, −3: nothing for both.
  Tensor<2> dup = {{2, 2}}, dgate = empty(1, 2);
  gated_backward_rows(Activation::reglu, Tensor<2>{{3, -3}}, Tensor<2>{{5, 5}}, dup, dgate);
  CHECK(all_close(dup, Tensor<2>{{6, 0}}, 0));
  CHECK(all_close(dgate, Tensor<2>{{10, 0}}, 0));
  // swiglu with gate 0, where silu is 0 and its derivative ½: dup = 0, dgate = 2·5/2.
  dup.fill(2);
  gated_backward_rows(Activation::swiglu, Tensor<2>{{0, 0}}, Tensor<2>{{5, -5}}, dup, dgate);
  CHECK(all_close(dup, Tensor<2>{{0, 0}}, 0));
  CHECK(all_close(dgate, Tensor<2>{{5, -5}}, 0));
}

/// How far a derivative may be off. It is a sum of two products with x as a factor, each within a
/// few roundings, and x is at most 12. Far above 0, 1 − σ has lost the last bits of σ; in
/// gelu_tanh's derivative x and the derivative of the cubic, about 40 together, multiply that.
static double derivative_bound(Activation activation) {
  using enum Activation;
  return (activation == gelu_tanh || activation == geglu_tanh ? 64 : 20) * u;
}

TEST_CASE("activations: formula and kernels are what finite differences give in float64") {
  for (const size_t F : {1, 7, 37, 64, 601}) {
    const Tensor<2> x = numbers(1, 24, 0.01f, 3, F), up = numbers(2, 4, 0, 3, F);
    const Tensor<2> dy = numbers(3, 2, 0, 3, F), ones = xt::ones_like(x);
    for (const auto& activations : {alone, with_gate})
      for (const Activation activation : activations) {
        CAPTURE(activation_name(activation));
        CAPTURE(F);
        Tensor<2> values = empty(3, F), derivatives = empty(3, F);
        for (size_t i = 0; i < x.size(); ++i) {
          const double at = double(x.data()[i]), h = 1e-5;
          const double above = value(activation, at + h), below = value(activation, at - h);
          derivatives.data()[i] = float((above - below) / (2 * h));
          values.data()[i] = float(value(activation, at));
        }
        // up is at most 2, dy at most 1. Chapter 07's values are within 12 roundings of |x|.
        const double bound = derivative_bound(activation);
        CHECK(all_close(activation_derivative(activation, x), derivatives, bound));
        Tensor<2> dx = dy, dgate = empty(3, F);
        if (is_gated(activation)) {
          gated_backward_rows(activation, x, up, dx, dgate);
          CHECK(all_close(dgate, Tensor<2>(dy * up * derivatives), 2 * bound));
          CHECK(all_close(dx, Tensor<2>(dy * values), 12 * 12 * u));
        } else {
          activate_backward_rows(activation, x, dx);
          CHECK(all_close(dx, Tensor<2>(dy * derivatives), bound));
        }
      }
  }
}

TEST_CASE("gelu, gelu_tanh and silu equal PyTorch's autograd") {
  const Tensor<2> x = numbers(5, 12, 0, 1, 101), dy = numbers(6, 2, 0, 1, 101);
  const Tensor<2> want = reference<2>("activations");
  for (size_t i = 0; i < 3; ++i) {
    const Activation activation = alone[i + 1];  // the first is relu
    CAPTURE(activation_name(activation));
    Tensor<2> dx = dy;
    activate_backward_rows(activation, x, dx);
    CHECK(all_close(dx, rows_of(want, i, 1), derivative_bound(activation)));
    CHECK(all_close(Tensor<2>(dy * activation_derivative(activation, x)), rows_of(want, i, 1),
                    derivative_bound(activation)));
  }
}

TEST_CASE("far from 0 a derivative is 0 or 1, and never infinity times 0") {
  const Tensor<2> x = {{-1e18f, -1e4f, -100, -30, 30, 100, 1e4f, 1e18f}};
  for (const auto& activations : {alone, with_gate})
    for (const Activation activation : activations) {
      CAPTURE(activation_name(activation));
      const float above = activation == Activation::glu ? 0 : 1;
      const Tensor<2> want = {{0, 0, 0, 0, above, above, above, above}};
      CHECK(all_close(activation_derivative(activation, x), want, u));
      CHECK(all_close(derivative_by_rows(activation, x), want, u));
    }
}

TEST_CASE("activations: a NaN in dy or up stays, and one in x, where the derivative depends on x") {
  const float nan = NAN;
  for (const Activation activation : alone) {
    CAPTURE(activation_name(activation));
    Tensor<2> dx = {{nan, 1, 1}};
    activate_backward_rows(activation, Tensor<2>{{-1, nan, 2}}, dx);
    CHECK(std::isnan(dx(0, 0)));
    CHECK(std::isnan(dx(0, 1)) == (activation != Activation::relu));
    CHECK(std::isfinite(dx(0, 2)));
  }
  for (const Activation activation : with_gate) {
    CAPTURE(activation_name(activation));
    Tensor<2> dup = {{nan, 1, 1, 1}}, dgate = empty(1, 4);
    gated_backward_rows(activation, Tensor<2>{{-1, nan, 2, 2}}, Tensor<2>{{1, 1, nan, 1}}, dup,
                        dgate);
    CHECK((std::isnan(dup(0, 0)) && std::isnan(dgate(0, 0))));
    CHECK(std::isnan(dup(0, 1)));
    CHECK((std::isfinite(dup(0, 2)) && std::isnan(dgate(0, 2))));
    CHECK((std::isfinite(dup(0, 3)) && std::isfinite(dgate(0, 3))));
  }
}

TEST_CASE("activations refuse the other kind and shapes that disagree") {
  const Tensor<2> x = zeros(2, 3), other = zeros(2, 4);
  Tensor<2> dy = zeros(2, 3), dgate = zeros(2, 3), small = zeros(1, 3);
  using enum Activation;
  REFUSES(activate_backward_rows(glu, x, dy), "activation: wanted one without a gate, got glu");
  REFUSES(gated_backward_rows(gelu_tanh, x, x, dy, dgate),
          "activation: wanted one with a gate, got gelu_tanh");
  REFUSES(activate_backward_rows(silu, x, small), "dy: wanted shape [2, 3], got [1, 3]");
  REFUSES(gated_backward_rows(swiglu, x, other, dy, dgate), "up: wanted shape [2, 3], got [2, 4]");
  REFUSES(gated_backward_rows(swiglu, x, x, small, dgate), "dy: wanted shape [2, 3], got [1, 3]");
  REFUSES(gated_backward_rows(swiglu, x, x, dy, small), "dgate: wanted shape [2, 3], got [1, 3]");
}

}  // namespace t2t::activation_test
