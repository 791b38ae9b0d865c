// Causal attention over a sequence that no rank has whole: keys and values travel on a ring.
//
//   p times: read the keys that are here; pass them on to the next rank (ring_step.hpp)
//
// Each rank keeps its own queries, and for each of them and each head an online softmax (chapter
// 11) of the keys that it has met so far. After p − 1 exchanges, each query has met all keys. Liu
// et al. 2023, "Ring Attention with Blockwise Transformers for Near-Infinite Context" (arXiv
// 2310.01889).
//
// This is the form to learn from: it takes one key at a time, and computes before it passes on. A
// fast one attends to blocks of keys, and sends them while it computes.
#pragma once

#include "19_ranks/counting/counts.hpp"
#include "20_split_models/context_parallel/ring_step.hpp"

namespace t2t {

/// The rows of chapter 06's grouped-query attention that belong to this rank's tokens, [T_own,
/// H·D]. All ranks must call it. Throws std::invalid_argument as chapter 06's expect_groups does,
/// and unless q, k and v have a row for each token of this rank; std::runtime_error as send and
/// receive do.
Tensor<2> ring_attention(const Communicator& ranks, const DividedSequence& sequence,
                         const Tensor<2>& q,   // [T_own, H·D]
                         const Tensor<2>& k,   // [T_own, G·D]
                         const Tensor<2>& v);  // [T_own, G·D]

/// What a rank of `size` sends in one call: the keys and values of all ranks but the next one.
Sent ring_attention_cost(const DividedSequence& sequence, std::size_t D, std::size_t size,
                         std::size_t rank);

}  // namespace t2t
