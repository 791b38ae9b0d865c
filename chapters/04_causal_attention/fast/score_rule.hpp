// Scores by another rule than 1/√D and a mask: what attention.hpp's ScoreRule says, as a formula
// and for the kernels.
//
//   score = cap·tanh(factor·q·k / cap), or factor·q·k without a cap
//
// A cap bounds the scores smoothly, however large the products grow. Gemma Team 2024, "Gemma 2".
#pragma once

#include "04_causal_attention/attention.hpp"

namespace t2t {

/// The weights by such a rule, softmax of the scores. Throws as attention.hpp's attention_weights.
Tensor<2> attention_weights(const Tensor<2>& q,      // [T, D]
                            const Tensor<2>& k,      // [S, D]
                            const ScoreRule& rule);  // [T, S]

/// The formula, [T, D]. With a mask alone it is attention.hpp's, bit for bit. Throws as that does.
Tensor<2> attention(const Tensor<2>& q,  // [T, D]
                    const Tensor<2>& k,  // [S, D]
                    const Tensor<2>& v,  // [S, D]
                    const ScoreRule& rule);

/// For the kernels: if the rule has a cap, products q·k of vectors of D numbers become scores, in
/// place. Returns the factor that softmax_row has yet to apply: the rule's, or 1 after a cap.
float cap_row(Row products, const ScoreRule& rule, std::size_t D);

}  // namespace t2t
