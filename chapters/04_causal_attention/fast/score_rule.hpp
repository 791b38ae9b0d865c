// Scores by another rule than 1/√D and a mask, as a formula and for the kernels.
//
//   score = cap·tanh(factor·q·k / cap), or factor·q·k without a cap
//
// A cap bounds the scores smoothly, however large the products grow. Gemma Team 2024, "Gemma 2".
#pragma once

#include <cmath>

#include "04_causal_attention/attention.hpp"

namespace t2t {

/// How the kernels make a score of a product q·k: almost always as in attention.hpp, by a mask
/// alone. A few models use another factor than 1/√D, or a cap, which keeps a score between −cap
/// and cap (Gemma 2).
struct ScoreRule {
  Mask mask;
  float factor = 0;  // of q·k; 0: 1/√D
  float cap = 0;     // 0: none

  ScoreRule(Mask mask, float factor = 0, float cap = 0) : mask(mask), factor(factor), cap(cap) {}
  float factor_for(std::size_t D) const { return factor > 0 ? factor : 1 / std::sqrt(float(D)); }
  bool operator==(const ScoreRule&) const = default;
};

/// The weights by such a rule, softmax of the scores. Throws as attention.hpp's attention_weights.
Tensor<2> attention_weights(const Tensor<2>& q,      // [T, D]
                            const Tensor<2>& k,      // [S, D]
                            const ScoreRule& rule);  // [T, S]

/// The formula, [T, D]. With a mask alone it is attention.hpp's, bit for bit. Throws as that does.
Tensor<2> attention(const Tensor<2>& q,  // [T, D]
                    const Tensor<2>& k,  // [S, D]
                    const Tensor<2>& v,  // [S, D]
                    const ScoreRule& rule);

/// For the kernels: if the rule has a cap, products q·k of vectors of width D become scores, in
/// place. Returns the factor that softmax_row has yet to apply: the rule's, or 1 after a cap.
float cap_row(Row products, const ScoreRule& rule, std::size_t D);

}  // namespace t2t
