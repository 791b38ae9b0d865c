// Activations: the functions between a feed-forward network's matrices, alone or as a gate.
//
//   relu(x) = max(0, x)     gelu(x) = x · Φ(x) = x/2 · (1 + erf(x/√2))     silu(x) = x · σ(x)
//   swiglu(gate, up) = silu(gate) · up, and glu, reglu, geglu the same with σ, relu, gelu
//
// Φ(x) is the probability that a number from N(0, 1) is below x, and σ(x) = 1 / (1 + exp(−x)).
// Papers: Nair and Hinton 2010 (relu), Hendrycks and Gimpel 2016 (gelu, silu), Dauphin et al. 2016
// (glu), Shazeer 2020 (the other gated ones). All finite numbers are valid inputs. NaN stays NaN,
// and -infinity may give NaN. The error is at most 12·2⁻²⁴ of |x|; of a gated one it is at most
// 12·2⁻²⁴ of |gate·up|, or of |up| for glu. feed_forward.hpp uses these functions;
// fast/activation_rows.hpp is the form that a model runs.
#pragma once

#include <numbers>
#include <string_view>

#include "tensor.hpp"

namespace t2t {

// [names]
/// The first four are functions of one number, the others of two, gate and up.
enum class Activation { relu, gelu, gelu_tanh, silu, glu, reglu, geglu, geglu_tanh, swiglu };
// [/names]

/// Whether it is a function of gate and up; the network then has a third matrix.
bool is_gated(Activation activation);
/// The name in the enum: "swiglu".
std::string_view activation_name(Activation activation);

/// Throws std::invalid_argument unless the activation is of this kind: with a gate, or without.
void expect_kind(Activation activation, bool gated);

// [constants]
inline constexpr float inverse_root_2 = 1 / std::numbers::sqrt2_v<float>;
inline constexpr float root_2_over_pi = 0.7978845608f;  // √(2/π), erf(x/√2)'s derivative at 0
// [/constants]

/// The formulas, applied to each element. Each returns a tensor of x's shape.
Tensor<2> sigmoid(const Tensor<2>& x);
Tensor<2> relu(const Tensor<2>& x);
Tensor<2> gelu(const Tensor<2>& x);
Tensor<2> gelu_tanh(const Tensor<2>& x);  // x/2 · (1 + tanh(√(2/π) · (x + 0.044715·x³))), GPT-2's
Tensor<2> silu(const Tensor<2>& x);       // Swish with β = 1 is the same function

/// The gated ones: act(gate) · up for each pair of elements. Each throws std::invalid_argument
/// unless gate and up have the same shape.
Tensor<2> glu(const Tensor<2>& gate, const Tensor<2>& up);
Tensor<2> reglu(const Tensor<2>& gate, const Tensor<2>& up);
Tensor<2> geglu(const Tensor<2>& gate, const Tensor<2>& up);
Tensor<2> geglu_tanh(const Tensor<2>& gate, const Tensor<2>& up);  // Gemma's
Tensor<2> swiglu(const Tensor<2>& gate, const Tensor<2>& up);      // LLaMA's

/// The formula that `activation` names: activate for one without a gate, gated for one with a gate.
/// Throws std::invalid_argument when it is of the other kind, or as above.
Tensor<2> activate(Activation activation,
                   const Tensor<2>& x);  // [T, F]
Tensor<2> gated(Activation activation,
                const Tensor<2>& gate,  // [T, F]
                const Tensor<2>& up);   // [T, F]

}  // namespace t2t
