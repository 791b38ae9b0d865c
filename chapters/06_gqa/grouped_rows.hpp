// Grouped-query attention as a kernel: H query heads read G heads of keys and values where they
// lie.
//
// One query goes the way of decode_attention.hpp, which reads each key once for all heads of its
// group; several go chapter 04's way, block by block. Chapter 08's block calls it; chapter 11 has
// another kernel with the same arguments, which holds no whole row of scores.
#pragma once

#include "04_causal_attention/multi_head.hpp"
#include "tensor.hpp"

namespace t2t {

/// Throws std::invalid_argument unless q is whole heads [T, H·D] and G divides H, and as chapter
/// 04's expect_heads and expect_mask do.
void expect_grouped(ConstMatrix q, const KeyValueHeads& heads, Mask mask);

/// Scratch memory for grouped_attention_rows: make it once, use it for every layer and call.
struct GroupedScratch {
  Tensor<2> scores;     // [threads, floats for one task]
  Tensor<2> stretches;  // [H·P, D]: what each of P stretches of keys gives a head
  Tensor<2> log_sums;   // [H, P]: the log of each stretch's sum: its weight when they are joined

  /// Room for calls of up to T queries, S keys, H heads and a width of D, on as many threads as are
  /// in use now.
  GroupedScratch(std::size_t T, std::size_t S, std::size_t H, std::size_t D);
};
/// Throws std::invalid_argument unless it has room for a call of T queries and S keys, on as many
/// threads as are in use now.
void expect_room(const GroupedScratch& scratch, std::size_t T, std::size_t S, std::size_t H,
                 std::size_t G, std::size_t D);

/// The kernel. Under a causal mask the queries belong to the last T of the S positions. Allocates
/// nothing. Throws std::invalid_argument when out is not [T, H·D] or scratch is too small, and as
/// expect_grouped does.
void grouped_attention_rows(ConstMatrix q,               // [T, H·D]
                            const KeyValueHeads& heads,  // G of [S, D]
                            Mask mask,
                            Matrix out,  // [T, H·D]; must not overlap what is read
                            GroupedScratch& scratch);

}  // namespace t2t
