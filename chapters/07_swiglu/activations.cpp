#include "07_swiglu/activations.hpp"

#include <array>
#include <numbers>
#include <stdexcept>
#include <string>

#include "lanes.hpp"
#include "rows.hpp"
#include "shapes.hpp"

namespace t2t {

// [constants]
static constexpr float inverse_root_2 = 1 / std::numbers::sqrt2_v<float>;
static constexpr float root_2_over_pi = 0.7978845608f;  // √(2/π): tanh then has erf's slope at 0
// [/constants]

// [kinds]
bool is_gated(Activation activation) { return activation >= Activation::glu; }

std::string_view activation_name(Activation activation) {
  static constexpr std::array names = {"relu",  "gelu",  "gelu_tanh",  "silu",  "glu",
                                       "reglu", "geglu", "geglu_tanh", "swiglu"};
  return names[std::size_t(activation)];
}

static void expect_kind(Activation activation, bool gated) {
  if (is_gated(activation) == gated) return;
  throw std::invalid_argument(std::string("activation: wanted one ") +
                              (gated ? "with" : "without") + " a gate, got " +
                              std::string(activation_name(activation)));
}
// [/kinds]

// [formulas]
Tensor<2> sigmoid(const Tensor<2>& x) { return 1 / (1 + xt::exp(-x)); }

// NaN < 0 is false, so NaN stays NaN. maximum(x, 0) may turn it into 0.
Tensor<2> relu(const Tensor<2>& x) { return xt::where(x < 0, 0.0f, x); }

Tensor<2> gelu(const Tensor<2>& x) { return 0.5f * x * (1 + xt::erf(x * inverse_root_2)); }

Tensor<2> gelu_tanh(const Tensor<2>& x) {
  return 0.5f * x * (1 + xt::tanh(root_2_over_pi * (x + 0.044715f * x * x * x)));
}

// One division: far below zero exp(−x) is infinite, and x / infinity is −0, as it should be.
Tensor<2> silu(const Tensor<2>& x) { return x / (1 + xt::exp(-x)); }
// [/formulas]

// [gated]
/// The product of each pair of numbers, after a check of the shapes.
static Tensor<2> times(const Tensor<2>& activated, const Tensor<2>& up) {
  expect_shape("up", up, {activated.shape(0), activated.shape(1)});
  return activated * up;
}

Tensor<2> glu(const Tensor<2>& gate, const Tensor<2>& up) { return times(sigmoid(gate), up); }
Tensor<2> reglu(const Tensor<2>& gate, const Tensor<2>& up) { return times(relu(gate), up); }
Tensor<2> geglu(const Tensor<2>& gate, const Tensor<2>& up) { return times(gelu(gate), up); }
Tensor<2> geglu_tanh(const Tensor<2>& gate, const Tensor<2>& up) {
  return times(gelu_tanh(gate), up);
}
Tensor<2> swiglu(const Tensor<2>& gate, const Tensor<2>& up) { return times(silu(gate), up); }

Tensor<2> activate(Activation activation, const Tensor<2>& x) {
  expect_kind(activation, false);
  static constexpr std::array formulas = {relu, gelu, gelu_tanh, silu};
  return formulas[std::size_t(activation)](x);
}

Tensor<2> gated(Activation activation, const Tensor<2>& gate, const Tensor<2>& up) {
  expect_kind(activation, true);
  static constexpr std::array formulas = {glu, reglu, geglu, geglu_tanh, swiglu};
  return formulas[std::size_t(activation) - std::size_t(Activation::glu)](gate, up);
}
// [/gated]

// The same for a register of numbers (Lanes). These are objects and not functions, so that the
// compiler inlines them.

// [lanes]
static constexpr auto sigmoid_lanes = [](Lanes x) { return 1.0f / (1.0f + xsimd::exp(-x)); };
static constexpr auto relu_lanes = [](Lanes x) { return xsimd::select(x < 0.0f, Lanes(0), x); };
static constexpr auto gelu_lanes = [](Lanes x) {
  return 0.5f * x * (1.0f + xsimd::erf(x * inverse_root_2));
};
// (1 + tanh(u))/2 is σ(2u), so one exponential is enough.
static constexpr auto gelu_tanh_lanes = [](Lanes x) {
  const Lanes u = root_2_over_pi * (x + 0.044715f * x * x * x);
  return x / (1.0f + xsimd::exp(-2.0f * u));
};
static constexpr auto silu_lanes = [](Lanes x) { return x / (1.0f + xsimd::exp(-x)); };
// [/lanes]

/// Calls `use` with the activation's function, which is applied to x or to the gate.
template <class Use>
static void with_lanes(Activation activation, Use use) {
  switch (activation) {
    case Activation::glu:
      return use(sigmoid_lanes);
    case Activation::relu:
    case Activation::reglu:
      return use(relu_lanes);
    case Activation::gelu:
    case Activation::geglu:
      return use(gelu_lanes);
    case Activation::gelu_tanh:
    case Activation::geglu_tanh:
      return use(gelu_tanh_lanes);
    case Activation::silu:
    case Activation::swiglu:
      return use(silu_lanes);
  }
}

void activate_rows(Activation activation, ConstMatrix x, Matrix y) {
  expect_kind(activation, false);
  expect_shape("y", y, {x.rows, x.cols});
  with_lanes(activation, [&](auto f) {
    for_each_row(x.rows, x.cols, [&](std::size_t t) { map_row(y.row(t), f, x.row(t)); });
  });
}

void gated_rows(Activation activation, ConstMatrix gate, ConstMatrix up, Matrix y) {
  expect_kind(activation, true);
  expect_shape("up", up, {gate.rows, gate.cols});
  expect_shape("y", y, {gate.rows, gate.cols});
  with_lanes(activation, [&](auto f) {
    const auto gated = [&](Lanes open, Lanes up) { return f(open) * up; };
    for_each_row(gate.rows, gate.cols,
                 [&](std::size_t t) { map_row(y.row(t), gated, gate.row(t), up.row(t)); });
  });
}

}  // namespace t2t
