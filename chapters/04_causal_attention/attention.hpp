// Attention with one head: each query gets a mean of the values, weighted by how well their keys
// match it.
//
//   out = softmax(q·kᵀ / √D + mask) · v
//
// The mask is 0 where a query may attend to a key and −infinity where it may not. Vaswani et al.
// 2017, "Attention Is All You Need"; sliding windows: Beltagy et al. 2020, "Longformer".
// multi_head.hpp makes q, k and v from tokens and runs several heads. Chapter 05 keeps k and v from
// step to step; chapter 11 computes the same without storing the scores.
#pragma once

#include <cmath>

#include "random.hpp"
#include "tensor.hpp"

namespace t2t {

/// Which keys a query sees. none: all S keys. causal: the T queries are the last T of the S
/// positions, so query t stands at position S − T + t and sees keys 0 … S − T + t. sliding(W): the
/// last W of those, its own key included; sliding(0) is causal.
struct Mask {
  bool is_causal;
  std::size_t window = 0;  // W; 0: no window

  static const Mask none, causal;
  static constexpr Mask sliding(std::size_t window) { return {true, window}; }
  bool operator==(const Mask&) const = default;
};
inline constexpr Mask Mask::none{false}, Mask::causal{true};

/// How the kernels make a score of a product q·k: almost always as above, by a mask alone. A few
/// models have another factor than 1/√D, or a cap: score = cap·tanh(factor·q·k / cap), which stays
/// between −cap and cap (Gemma 2).
struct ScoreRule {
  Mask mask;
  float factor = 0;  // of q·k; 0: 1/√D
  float cap = 0;     // 0: none

  ScoreRule(Mask mask, float factor = 0, float cap = 0) : mask(mask), factor(factor), cap(cap) {}
  float factor_for(std::size_t D) const { return factor > 0 ? factor : 1 / std::sqrt(float(D)); }
  bool operator==(const ScoreRule&) const = default;
};

/// The keys begin, begin + 1 … end − 1.
struct KeyRange {
  std::size_t begin, end;
  std::size_t size() const { return end - begin; }
  bool operator==(const KeyRange&) const = default;
};
/// The keys that query t sees, of T queries and S keys. For every mask they are one range of at
/// least one key. Checks nothing: t must be below T, and expect_mask must accept T, S and mask.
KeyRange keys_seen(std::size_t t, std::size_t T, std::size_t S, Mask mask);
/// The keys that at least one of the queries t … t + count − 1 sees. If these queries and these
/// keys are taken as all there are, each query sees the same keys as before under the same mask.
/// count must be at least 1.
KeyRange keys_seen(std::size_t t, std::size_t count, std::size_t T, std::size_t S, Mask mask);

/// The number of pairs of a query and a key that it sees.
double pairs_seen(std::size_t T, std::size_t S, Mask mask);

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

/// For training only: each weight becomes 0 with probability p, and the others are divided by 1 −
/// p, so that on average a row still sums to 1. Throws std::invalid_argument unless p is in [0, 1).
Tensor<3> dropout(const Tensor<3>& weights,  // [H, T, S]
                  float p, Random& random);

/// How many queries the row kernel takes at once. Their scores lie in the scratch memory. A larger
/// block computes more scores that a causal mask hides; a smaller one makes the products smaller.
constexpr std::size_t query_block = 64;

/// Floats of scratch memory that attend needs for T queries and S keys: min(T, query_block)·S.
std::size_t attend_floats(std::size_t T, std::size_t S);

/// The row kernel for one head. It reads q, k and v in place (inside [T, H·D], or from the used
/// part of a cache) and takes one block of queries after the other, so that it skips most of what
/// the mask hides. Allocates nothing. Throws std::invalid_argument when shapes disagree, D is 0 or
/// scratch is too small, and as expect_mask does. Where q·k overflows to −infinity for all keys
/// that a query sees, the formula throws, and here the query's row of out has no finite number.
void attend(ConstMatrix q,  // [T, D]
            ConstMatrix k,  // [S, D]
            ConstMatrix v,  // [S, D]
            const ScoreRule& rule,
            Matrix out,    // [T, D]; must not overlap q, k or v
            Row scratch);  // [attend_floats(T, S)] or more

}  // namespace t2t
