// Attention that adds a bias to the score of each query and key, before softmax.
//
//   out = softmax(q·kᵀ / √D + biases + mask) · v
//
// The biases can tell how far a key lies from its query. In ALiBi they are fixed, −slope · distance
// with a slope for each head (alibi_biases in 03_rope/positions/positions.hpp; Press et al. 2022,
// "Train Short, Test Long"); in T5 they are learned (Raffel et al. 2019). The row kernel
// attention_rows takes no biases. Used in no later chapter.
#pragma once

#include "04_causal_attention/attention.hpp"
#include "tensor.hpp"

namespace t2t {

/// The weights of H heads, [H, T, S]. A bias of −infinity masks its key, as the mask does. Throws
/// std::invalid_argument when shapes disagree, and as expect_mask and softmax do.
Tensor<3> biased_attention_weights(const Tensor<3>& q,       // [H, T, D]
                                   const Tensor<3>& k,       // [H, S, D]
                                   const Tensor<3>& biases,  // [H, T, S]
                                   Mask mask);

/// The heads' outputs, [H, T, D]. Otherwise as above.
Tensor<3> biased_attention(const Tensor<3>& q,       // [H, T, D]
                           const Tensor<3>& k,       // [H, S, D]
                           const Tensor<3>& v,       // [H, S, D]
                           const Tensor<3>& biases,  // [H, T, S]
                           Mask mask);

}  // namespace t2t
