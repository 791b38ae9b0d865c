// Online softmax: a weighted mean of values taken key by key, without ever holding all the scores.
//
//   m ← max(m, score)    l ← e^(m before − m)·l + e^(score − m)
//                        o ← e^(m before − m)·o + e^(score − m)·v        out = o / l
//
// Milakov and Gimelshein 2018, "Online normalizer calculation for softmax"; with values, Rabe and
// Staats 2021, "Self-attention Does Not Need O(n²) Memory", and Dao et al. 2022, "FlashAttention".
// One key at a time, for reading: flash_attention.hpp takes a block of keys at a time.
#pragma once

#include <limits>

#include "04_causal_attention/attention.hpp"
#include "tensor.hpp"

namespace t2t {

/// What some keys have come to, in any order. Nothing yet: highest is −infinity, the rest 0.
struct OnlineSoftmax {
  float highest = -std::numeric_limits<float>::infinity();  // m: of the scores so far
  float sum = 0;                                            // l: of e^(score − highest)
  Tensor<1> values;                                         // o: [D], of e^(score − highest)·v

  explicit OnlineSoftmax(std::size_t D) : values(xt::zeros<float>({D})) {}
};

/// One more key. A score of −infinity, that of a hidden key, changes nothing. Throws
/// std::invalid_argument unless v is [D].
void take(OnlineSoftmax& so_far, float score, ConstRow v);

/// The keys of another, which so_far has not seen. Throws std::invalid_argument when D differs.
void join(OnlineSoftmax& so_far, const OnlineSoftmax& other);

/// The mean of the values by softmax of the scores: [D]. Throws std::invalid_argument when no key
/// was taken.
Tensor<1> mean(const OnlineSoftmax& so_far);

/// Chapter 04's attention, one head, key by key. Throws as it does.
Tensor<2> online_attention(const Tensor<2>& q,  // [T, D]
                           const Tensor<2>& k,  // [S, D]
                           const Tensor<2>& v,  // [S, D]
                           Mask mask);

}  // namespace t2t
