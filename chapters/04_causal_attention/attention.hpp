// Attention with one head: each query gets a mean of the values, weighted by how well their keys
// match it.
//
//   out = softmax(q·kᵀ / √D + mask) · v
//
// The mask is 0 where a query may attend to a key and −infinity where it may not. Vaswani et al.
// 2017, "Attention Is All You Need"; sliding windows: Beltagy et al. 2020, "Longformer".
// multi_head.hpp makes q, k and v from tokens and runs several heads; fast/attend.hpp is the form
// that a model runs. Chapter 05 caches k and v from step to step; chapter 11 computes the same
// without storing the scores.
#pragma once

#include "tensor.hpp"

namespace t2t {

/// Which keys a query sees. none: all S keys. causal: the T queries are the last T of the S
/// positions, so query t is at position S − T + t and sees keys 0 … S − T + t. sliding(W): the
/// last W of those, its own key included; sliding(0) is causal.
struct Mask {
  bool is_causal;
  std::size_t window = 0;  // W; 0: no window

  static const Mask none, causal;
  static constexpr Mask sliding(std::size_t window) { return {true, window}; }
  bool operator==(const Mask&) const = default;
};
inline constexpr Mask Mask::none{false}, Mask::causal{true};

/// The keys begin, begin + 1 … end − 1.
struct KeyRange {
  std::size_t begin, end;
  std::size_t size() const { return end - begin; }
  bool operator==(const KeyRange&) const = default;
};
/// The keys that query t sees, of T queries and S keys. For every mask they are one range of at
/// least one key. Checks nothing: t must be below T, and expect_mask must accept T, S and mask.
KeyRange keys_seen(std::size_t t, std::size_t T, std::size_t S, Mask mask);
/// Throws std::invalid_argument when T or S is 0, when the mask is causal and T is more than S, and
/// when a mask that is not causal has a window.
void expect_mask(std::size_t T, std::size_t S, Mask mask);

/// What is added to the scores, [T, S]: 0 for a key that is seen, −infinity for one that is not.
/// Throws as expect_mask does.
Tensor<2> attention_mask(std::size_t T, std::size_t S, Mask mask);

/// The formula in three steps, each of which calls the one before: scores [T, S], weights [T, S],
/// out [T, D]. They throw std::invalid_argument when shapes disagree or D is 0, and as expect_mask
/// and softmax do.
Tensor<2> attention_scores(const Tensor<2>& q,  // [T, D]
                           const Tensor<2>& k,  // [S, D]
                           Mask mask);
Tensor<2> attention_weights(const Tensor<2>& q,  // [T, D]
                            const Tensor<2>& k,  // [S, D]
                            Mask mask);
Tensor<2> attention(const Tensor<2>& q,  // [T, D]
                    const Tensor<2>& k,  // [S, D]
                    const Tensor<2>& v,  // [S, D]
                    Mask mask);

}  // namespace t2t
