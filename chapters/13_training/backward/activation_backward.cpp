#include "13_training/backward/activation_backward.hpp"

#include "lanes.hpp"
#include "rows.hpp"
#include "shapes.hpp"

namespace t2t {

static constexpr float inverse_root_2_pi = 0.3989422804f;  // 1/√(2π), the bell curve's height
static constexpr float cubic = 0.044715f;                  // of gelu_tanh

// [derivatives]
Tensor<2> activation_derivative(Activation activation, const Tensor<2>& x) {
  const Tensor<2> s = sigmoid(x);
  switch (activation) {
    case Activation::relu:
    case Activation::reglu:
      return xt::where(x > 0, 1.0f, 0.0f);
    case Activation::gelu:
    case Activation::geglu:
      return 0.5f * (1 + xt::erf(x * inverse_root_2)) +
             x * inverse_root_2_pi * xt::exp(-0.5f * x * x);
    case Activation::gelu_tanh:
    case Activation::geglu_tanh: {
      const Tensor<2> tanh = xt::tanh(root_2_over_pi * (x + cubic * x * x * x));
      return 0.5f * (1 + tanh) +
             0.5f * x * (1 - tanh * tanh) * root_2_over_pi * (1 + 3 * cubic * x * x);
    }
    case Activation::silu:
    case Activation::swiglu:
      return s * (1 + x * (1 - s));
    case Activation::glu:
      break;
  }
  return s * (1 - s);
}
// [/derivatives]

/// The value and the derivative of an activation, for a register of values.
struct ValueAndSlope {
  Lanes value, derivative;
};

static Lanes sigmoid_of(Lanes x) { return 1.0f / (1.0f + xsimd::exp(-x)); }

static constexpr auto sigmoid_both = [](Lanes x) {
  const Lanes s = sigmoid_of(x);
  return ValueAndSlope{s, s * (1.0f - s)};
};
static constexpr auto relu_both = [](Lanes x) {
  return ValueAndSlope{xsimd::select(x < 0.0f, Lanes(0), x),
                       xsimd::select(x > 0.0f, Lanes(1), Lanes(0))};
};
static constexpr auto gelu_both = [](Lanes x) {
  const Lanes phi = 0.5f * (1.0f + xsimd::erf(x * inverse_root_2));
  return ValueAndSlope{x * phi, phi + x * inverse_root_2_pi * xsimd::exp(-0.5f * x * x)};
};
// (1 + tanh(u))/2 is σ(2u), and its derivative in u is 2·σ(2u)·(1 − σ(2u)).
static constexpr auto gelu_tanh_both = [](Lanes x) {
  const Lanes s = sigmoid_of(2.0f * root_2_over_pi * (x + cubic * x * x * x));
  const Lanes inner = 2.0f * root_2_over_pi * (1.0f + 3.0f * cubic * x * x);
  return ValueAndSlope{x * s, s + x * s * (1.0f - s) * inner};
};
static constexpr auto silu_both = [](Lanes x) {
  const Lanes s = sigmoid_of(x);
  return ValueAndSlope{x * s, s * (1.0f + x * (1.0f - s))};
};

/// Calls `use` with the function that the activation applies to its only input or to its gate.
template <class Use>
static void with_both(Activation activation, Use use) {
  switch (activation) {
    case Activation::glu:
      return use(sigmoid_both);
    case Activation::relu:
    case Activation::reglu:
      return use(relu_both);
    case Activation::gelu:
    case Activation::geglu:
      return use(gelu_both);
    case Activation::gelu_tanh:
    case Activation::geglu_tanh:
      return use(gelu_tanh_both);
    case Activation::silu:
    case Activation::swiglu:
      return use(silu_both);
  }
}

void activate_backward_rows(Activation activation, ConstMatrix x, Matrix dy) {
  expect_kind(activation, false);
  expect_shape("dy", dy, {x.rows, x.cols});
  with_both(activation, [&](auto both) {
    const auto times_derivative = [&](Lanes dy, Lanes x) { return dy * both(x).derivative; };
    for_each_row(x.rows, x.cols, [&](std::size_t t) {
      map_row(dy.row(t), times_derivative, ConstRow(dy.row(t)), x.row(t));
    });
  });
}

void gated_backward_rows(Activation activation, ConstMatrix gate, ConstMatrix up, Matrix dy,
                         Matrix dgate) {
  expect_kind(activation, true);
  expect_shape("up", up, {gate.rows, gate.cols});
  expect_shape("dy", dy, {gate.rows, gate.cols});
  expect_shape("dgate", dgate, {gate.rows, gate.cols});
  with_both(activation, [&](auto both) {
    const auto of_gate = [&](Lanes dy, Lanes gate, Lanes up) {
      return dy * up * both(gate).derivative;
    };
    const auto of_up = [&](Lanes dy, Lanes gate) { return dy * both(gate).value; };
    for_each_row(gate.rows, gate.cols, [&](std::size_t t) {
      map_row(dgate.row(t), of_gate, ConstRow(dy.row(t)), gate.row(t), up.row(t));
      map_row(dy.row(t), of_up, ConstRow(dy.row(t)), gate.row(t));
    });
  });
}

}  // namespace t2t
