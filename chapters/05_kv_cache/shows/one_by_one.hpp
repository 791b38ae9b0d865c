// Decode by both kinds of cache: one token per call, appended and attended to. For this chapter's
// program and bench.
#pragma once

#include "04_causal_attention/fast/attention_rows.hpp"

namespace t2t {

/// T tokens whose queries, keys and values are all x, into a cache that was made once for T.
Tensor<2> decode_in_place(const Tensor<2>& x,  // [T, G·D]
                          std::size_t G, AttentionScratch& scratch);

/// The same into a cache that is concatenated at every step.
Tensor<2> decode_concatenated(const Tensor<2>& x,  // [T, G·D]
                              std::size_t G, AttentionScratch& scratch);

}  // namespace t2t
