#include "07_swiglu/activations.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "shapes.hpp"

namespace t2t {

namespace {

/// The five functions of one number.
float sigma(float x) { return 1 / (1 + std::exp(-x)); }
float rectified(float x) { return x < 0 ? 0.0f : x; }
float by_erf(float x) { return 0.5f * x * (1 + std::erf(x * inverse_root_2)); }
float by_tanh(float x) {
  const float inner = x + 0.044715f * x * x * x;
  return 0.5f * x * (1 + std::tanh(root_2_over_pi * inner));
}
float swish(float x) { return x / (1 + std::exp(-x)); }

using Function = float (*)(float);

Tensor<2> each(Function f, const Tensor<2>& x) {
  Tensor<2> y = empty(x.shape(0), x.shape(1));
  std::transform(x.begin(), x.end(), y.begin(), f);
  return y;
}

Tensor<2> gate_with(Function f, const Tensor<2>& gate, const Tensor<2>& up) {
  expect_shape("up", up, {gate.shape(0), gate.shape(1)});
  Tensor<2> y = empty(gate.shape(0), gate.shape(1));
  for (std::size_t i = 0; i < y.size(); ++i)
    y.data()[i] = gate.data()[i] * f(up.data()[i]);  // WRONG
  return y;
}

}  // namespace

bool is_gated(Activation activation) {
  switch (activation) {
    case Activation::glu:
    case Activation::reglu:
    case Activation::geglu:
    case Activation::geglu_tanh:
    case Activation::swiglu:
      return true;
    default:
      return false;
  }
}

std::string_view activation_name(Activation activation) {
  switch (activation) {
    case Activation::relu:
      return "relu";
    case Activation::gelu:
      return "gelu";
    case Activation::gelu_tanh:
      return "gelu_tanh";
    case Activation::silu:
      return "silu";
    case Activation::glu:
      return "glu";
    case Activation::reglu:
      return "reglu";
    case Activation::geglu:
      return "geglu";
    case Activation::geglu_tanh:
      return "geglu_tanh";
    case Activation::swiglu:
      return "swiglu";
  }
  return "";
}

void expect_kind(Activation activation, bool gated) {
  const std::string wanted = gated ? "with" : "without";
  if (gated != is_gated(activation))
    throw std::invalid_argument("activation: wanted one " + wanted + " a gate, got " +
                                std::string(activation_name(activation)));
}

Tensor<2> sigmoid(const Tensor<2>& x) { return each(sigma, x); }
Tensor<2> relu(const Tensor<2>& x) { return each(rectified, x); }
Tensor<2> gelu(const Tensor<2>& x) { return each(by_erf, x); }
Tensor<2> gelu_tanh(const Tensor<2>& x) { return each(by_tanh, x); }
Tensor<2> silu(const Tensor<2>& x) { return each(swish, x); }

Tensor<2> glu(const Tensor<2>& gate, const Tensor<2>& up) { return gate_with(sigma, gate, up); }
Tensor<2> reglu(const Tensor<2>& gate, const Tensor<2>& up) {
  return gate_with(rectified, gate, up);
}
Tensor<2> geglu(const Tensor<2>& gate, const Tensor<2>& up) { return gate_with(by_erf, gate, up); }
Tensor<2> geglu_tanh(const Tensor<2>& gate, const Tensor<2>& up) {
  return gate_with(by_tanh, gate, up);
}
Tensor<2> swiglu(const Tensor<2>& gate, const Tensor<2>& up) { return gate_with(swish, gate, up); }

Tensor<2> activate(Activation activation, const Tensor<2>& x) {
  expect_kind(activation, false);
  switch (activation) {
    case Activation::relu:
      return relu(x);
    case Activation::gelu:
      return gelu(x);
    case Activation::gelu_tanh:
      return gelu_tanh(x);
    default:
      return silu(x);
  }
}

Tensor<2> gated(Activation activation, const Tensor<2>& gate, const Tensor<2>& up) {
  expect_kind(activation, true);
  switch (activation) {
    case Activation::glu:
      return glu(gate, up);
    case Activation::reglu:
      return reglu(gate, up);
    case Activation::geglu:
      return geglu(gate, up);
    case Activation::geglu_tanh:
      return geglu_tanh(gate, up);
    default:
      return swiglu(gate, up);
  }
}

}  // namespace t2t
