// Chapter 08's attention slot with keys and values in 8 or 4 bits.
//
//   for each text of a call, at its own position:
//     turn q and k (RoPE)
//     round k and v into this layer's cache
//     heads = attention(q, cache)
//
// Keys are rounded after RoPE, as the float cache keeps them. One token attends to the rounded rows
// stretch by stretch. For several tokens, all rows that they see become floats once, in memory that
// all layers share, for a kernel that reads floats. A model's state asks chapter 08's
// CachedAttention how long its texts are and tells it which rows belong to which text, so both stay
// there; its own caches are not filled.
#pragma once

#include <span>
#include <vector>

#include "08_block/cached_attention.hpp"
#include "12_quantization/cache/quantized_cache.hpp"

namespace t2t {

class QuantizedAttention {
 public:
  /// Makes caches of S positions for each layer of each text that `texts` has. `texts` must outlive
  /// this object: its runs and the lengths of its caches are read, and the lengths grow with each
  /// call; it may have been made for S = 1 and T_max = 1. kernel, chapter 06's unless one is given,
  /// attends for calls of several tokens. Throws std::invalid_argument as CachedAttention's
  /// constructor does, and unless bits is 4 or 8.
  QuantizedAttention(CachedAttention& texts, std::span<const BlockSettings> layers, std::size_t S,
                     std::size_t T_max, std::size_t bits, AttentionKernel kernel = {});
  QuantizedAttention(const QuantizedAttention&) = delete;  // give std::ref(it) to a slot

  /// caches[text][layer]
  std::vector<std::vector<QuantizedCache>> caches;

  /// The slot. Throws as CachedAttention does. The texts are then as long as they were.
  void operator()(const Projected& in, Matrix heads, const Trace& trace);

 private:
  void expect_rows(const Projected& in, ConstMatrix heads) const;
  void attend_floats(ConstMatrix q, const QuantizedCache& cache, std::size_t length, Mask mask,
                     Matrix out);

  CachedAttention& texts_;
  std::size_t S_;
  LayerTables layers_;
  QuantizedScratch scratch_;  // for one token
  Tensor<2> keys_, values_;   // [G·S, D] of one layer as floats, for several tokens
  AttentionKernel kernel_;
};

}  // namespace t2t
