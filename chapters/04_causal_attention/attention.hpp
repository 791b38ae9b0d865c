// Attention, one head: each query takes the mean of the values, weighted by how well it meets keys.
//
//   out = softmax(q·kᵀ / √D + mask) · v
//
// The mask is 0 where a query may look and −infinity where it may not. Vaswani et al. 2017,
// "Attention Is All You Need"; sliding windows: Beltagy et al. 2020, "Longformer". What turns
// tokens into q, k and v, and many heads side by side: multi_head.hpp. Chapter 05 keeps k and v
// from step to step; chapter 11 never stores the scores.
#pragma once

#include "random.hpp"
#include "tensor.hpp"

namespace t2t {

/// Which keys a query sees. none: all S of them. causal: the T queries are the last T of S
/// positions, so query t stands at position S − T + t and sees keys 0 … S − T + t. sliding(W): the
/// last W of these, its own among them; where W is 0, all of them.
struct Mask {
  bool is_causal;
  std::size_t window = 0;  // W, of a causal mask

  static const Mask none, causal;
  static constexpr Mask sliding(std::size_t window) { return {true, window}; }
  bool operator==(const Mask&) const = default;
};
inline constexpr Mask Mask::none{false}, Mask::causal{true};

/// Keys begin, begin + 1 … end − 1.
struct KeyRange {
  std::size_t begin, end;
  std::size_t size() const { return end - begin; }
  bool operator==(const KeyRange&) const = default;
};
/// The keys that query t sees, of T queries and S keys: whatever the mask, one range, of at least
/// one key. Checks nothing: t is below T, and T, S and mask are as expect_mask wants them.
KeyRange keys_seen(std::size_t t, std::size_t T, std::size_t S, Mask mask);
/// The keys that at least one of `count` queries from t on sees. With these as all the keys, and
/// those as all the queries, the same mask shows each query what it saw before.
KeyRange keys_seen(std::size_t t, std::size_t count, std::size_t T, std::size_t S, Mask mask);

/// How many pairs of a query and a key that it sees there are.
double pairs_seen(std::size_t T, std::size_t S, Mask mask);

/// Throws std::invalid_argument when T or S is 0, when the mask is causal and T is above S, and for
/// a window of a mask that is not causal.
void expect_mask(std::size_t T, std::size_t S, Mask mask);

/// What is added to the scores, [T, S]: 0 for a key that is seen, −infinity for one that is not.
/// Throws as expect_mask does.
Tensor<2> attention_mask(std::size_t T, std::size_t S, Mask mask);

/// The formula, in three steps: scores [T, S], weights [T, S], out [T, D].
/// Each throws std::invalid_argument when shapes disagree, and as expect_mask does.
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

/// For training only: each weight becomes 0 with probability p, the others are divided by 1 − p, so
/// that on average a row still sums to 1. Throws std::invalid_argument unless p is in [0, 1).
Tensor<2> dropout(const Tensor<2>& weights,  // [T, S]
                  float p, Random& random);

/// How many queries the kernel takes at once. Their scores are the scratch memory.
constexpr std::size_t query_block = 64;

/// Floats of scratch memory that attend needs for T queries and S keys.
std::size_t attend_floats(std::size_t T, std::size_t S);

/// The kernel: one head, read in place (inside [T, H·D], or from the used part of a cache), block
/// of queries by block, so that most of what the mask hides is skipped. Allocates nothing.
/// Throws std::invalid_argument when shapes disagree or scratch is too small, and as expect_mask
/// does.
void attend(ConstMatrix q,  // [T, D]
            ConstMatrix k,  // [S, D]
            ConstMatrix v,  // [S, D]
            Mask mask,
            Matrix out,    // [T, D]; must not overlap q, k or v
            Row scratch);  // [attend_floats(T, S)] or more

}  // namespace t2t
