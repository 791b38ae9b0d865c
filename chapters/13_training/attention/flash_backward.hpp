// The backward pass of flash attention: attention_backward.hpp's sums, block by block, without a
// [T, S] matrix.
//
// A first pass over the keys computes one value for each query and head, L = ln Σ e^score. It lets
// each weight follow from its score alone: P = e^(score − L). The sum over j of P·dP is known
// before any key is read, since with dP[j] = dout·v[j] it is
//
//   Σ over j of P[j]·(dout·v[j]) = dout · Σ over j of P[j]·v[j] = dout·out
//
// so each block of scores can be finished by itself. Dao et al. 2022, "FlashAttention", appendix B,
// where the forward pass saves L; here a product of queries and keys, one of six, recomputes it,
// and chapter 11's kernel stays as it is.
#pragma once

#include "06_gqa/fast/grouped_rows.hpp"
#include "tensor.hpp"

namespace t2t {

/// Scratch memory for flash_backward: make it once, and use it for all layers.
class FlashBackwardScratch {
 public:
  /// For up to S keys, on as many threads as are in use now.
  FlashBackwardScratch(std::size_t H, std::size_t G, std::size_t D, std::size_t S);
  /// Throws std::invalid_argument unless it is large enough.
  void expect_room(std::size_t H, std::size_t G, std::size_t D, std::size_t S) const;
  std::size_t bytes() const { return floats_.size() * sizeof(float); }  // of all threads
  Row of_thread(std::size_t thread) { return row(floats_, thread); }

 private:
  std::size_t H_, G_, D_, S_;
  Tensor<2> floats_;  // [threads, floats for one group of heads]
};

/// One sequence of a batch, as the forward pass left it; q and k are rotated, if the model rotates
/// them.
struct AttentionPass {
  ConstMatrix q;     // [T, H·D]
  ConstMatrix k;     // [T, G·D]
  ConstMatrix v;     // [T, G·D]
  ConstMatrix out;   // [T, H·D]
  ConstMatrix dout;  // [T, H·D]
};
/// The rows of one sequence of several, T from `first` on.
inline AttentionPass of_sequence(const AttentionPass& all, std::size_t first, std::size_t T) {
  return {all.q.rows_from(first, T), all.k.rows_from(first, T), all.v.rows_from(first, T),
          all.out.rows_from(first, T), all.dout.rows_from(first, T)};
}

/// Where the gradients of a sequence's q, k and v are written, overwriting what is there. They must
/// not overlap what is read.
struct AttentionGradientRows {
  Matrix q;  // [T, H·D]
  Matrix k;  // [T, G·D]
  Matrix v;  // [T, G·D]
};

/// Writes the gradients of B sequences of T tokens, whose rows lie one sequence after the other. A
/// task is one group of heads of one sequence: B·G tasks share the threads. Allocates nothing.
/// Throws std::invalid_argument when shapes disagree, B does not divide the rows, G does not divide
/// H, and when the scratch memory is too small.
void flash_backward(const AttentionPass& pass, std::size_t B, std::size_t H, std::size_t G,
                    const ScoreRule& rule, const AttentionGradientRows& gradients,
                    FlashBackwardScratch& scratch);

}  // namespace t2t
