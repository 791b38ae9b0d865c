#include "07_swiglu/activations.hpp"

#include <array>
#include <stdexcept>
#include <string>

#include "shapes.hpp"

namespace t2t {

// [kinds]
bool is_gated(Activation activation) { return activation >= Activation::glu; }

std::string_view activation_name(Activation activation) {
  static constexpr std::array names = {"relu",  "gelu",  "gelu_tanh",  "silu",  "glu",
                                       "reglu", "geglu", "geglu_tanh", "swiglu"};
  return names[std::size_t(activation)];
}

void expect_kind(Activation activation, bool gated) {
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
/// The product of each pair of elements, after a check of the shapes.
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

}  // namespace t2t
