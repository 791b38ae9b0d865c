// Online softmax: the weighted mean of values, computed key by key, without storing the scores.
//
//   m ← max(m, score)    l ← e^(m before − m)·l + e^(score − m)
//                        o ← e^(m before − m)·o + e^(score − m)·v        out = o / l
//
// Milakov and Gimelshein 2018, "Online normalizer calculation for softmax"; with values, Rabe and
// Staats 2021, "Self-attention Does Not Need O(n²) Memory", and Dao et al. 2022, "FlashAttention".
// This is the form to learn from; flash_attention.hpp processes a block of keys at a time.
#pragma once

#include <limits>

#include "04_causal_attention/attention.hpp"
#include "tensor.hpp"

namespace t2t {

/// What is known after some keys. Before the first key, highest is −infinity and the sums are 0.
struct OnlineSoftmax {
  float highest = -std::numeric_limits<float>::infinity();  // m: the highest score
  float sum = 0;                                            // l: Σ e^(score − highest)
  Tensor<1> values;                                         // o: [D], Σ e^(score − highest)·v

  explicit OnlineSoftmax(std::size_t D) : values(xt::zeros<float>({D})) {}
};

/// Adds one more key, by its score and its value. A masked key's score, −infinity, changes nothing.
/// Throws std::invalid_argument unless v is [D].
void take(OnlineSoftmax& so_far, float score, ConstRow v);

/// Adds all keys of `other`, none of which may be in so_far already. Throws std::invalid_argument
/// unless both have the same D.
void join(OnlineSoftmax& so_far, const OnlineSoftmax& other);

/// The mean of the values, weighted by softmax of the scores: o / l, [D]. Throws
/// std::invalid_argument when there is no key yet.
Tensor<1> mean(const OnlineSoftmax& so_far);

/// Chapter 04's attention of one head, computed key by key. Throws as that does, and for D = 0.
Tensor<2> online_attention(const Tensor<2>& q,  // [T, D]
                           const Tensor<2>& k,  // [S, D]
                           const Tensor<2>& v,  // [S, D]
                           Mask mask);

}  // namespace t2t
