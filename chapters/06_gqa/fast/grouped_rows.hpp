// Grouped-query attention as a kernel: H query heads read G heads of keys and values in place, from
// a cache or from projections.
//
// A call of one query uses decode_attention.hpp, which reads each key once for all query heads of
// its group. A call of several queries uses chapter 04's attend_heads, block by block. Chapter 08's
// block calls it; chapter 11 has a kernel with the same arguments that never stores a whole row of
// scores.
#pragma once

#include "04_causal_attention/fast/attention_rows.hpp"
#include "tensor.hpp"

namespace t2t {

/// Throws std::invalid_argument, in this order: as chapter 04's expect_heads does, which refuses D
/// = 0; as its expect_mask does for S = heads.S() keys; when q is not H whole heads of width D; as
/// expect_groups does.
void expect_grouped(ConstMatrix q, const KeyValueHeads& heads, Mask mask);

/// Scratch memory for grouped_attention_rows: made once, used for every layer and call.
struct GroupedScratch {
  Tensor<2> scores;     // [threads, floats]: a thread's row holds the scores of its task
  Tensor<2> stretches;  // [H·P, D]: row h·P + p is the output of head h over stretch p
  Tensor<2> log_sums;   // [H, P]: log Σ e^score of each head over each stretch

  /// Enough for calls of up to T queries, S keys, H query heads and width D, on as many
  /// threads as OpenMP uses now (thread_count). A call with smaller H, P or D puts its own [H·P, D]
  /// and [H, P], without gaps, at the beginning of the memory of stretches and log_sums.
  GroupedScratch(std::size_t T, std::size_t S, std::size_t H, std::size_t D);
};
/// Throws std::invalid_argument, with T, S, H, D, the threads and all three shapes, unless scratch
/// is large enough for a call of T queries over S keys, H query heads, G heads of keys and width D,
/// on as many threads as OpenMP uses now. S counts all keys, also those that a window hides. Only
/// what the call uses is checked: the rows and columns of scores, and with one query also how many
/// floats stretches and log_sums have in all, whatever their shapes.
void expect_room(const GroupedScratch& scratch, std::size_t T, std::size_t S, std::size_t H,
                 std::size_t G, std::size_t D);

/// The kernel. Under a causal mask the queries belong to the last T of the S positions. Allocates
/// nothing. Throws std::invalid_argument, in this order: as expect_grouped does, when out is not
/// [T, H·D], and as expect_room does, all before anything is written.
void grouped_attention_rows(ConstMatrix q,               // [T, H·D]
                            const KeyValueHeads& heads,  // G heads of [S, D]
                            const ScoreRule& rule,
                            Matrix out,  // [T, H·D]; must not overlap what is read
                            GroupedScratch& scratch);

}  // namespace t2t
