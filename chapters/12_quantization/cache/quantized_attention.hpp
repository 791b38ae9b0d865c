// An attention function for chapter 08's block that keeps keys and values in 8 or 4 bits.
//
//   for each sequence of a call, at its own position:
//     rotate q and k (RoPE)
//     quantize k and v into this layer's cache
//     heads = attention(q, cache)
//
// Keys are rounded after RoPE, as the float cache stores them. One token attends to the rounded
// rows stretch by stretch. For several tokens, all rows that they see are converted to floats once,
// in memory shared by all layers, for a kernel that reads floats.
#pragma once

#include <span>
#include <vector>

#include "08_block/fast/cached_attention.hpp"
#include "12_quantization/cache/quantized_cache.hpp"

namespace t2t {

class QuantizedAttention {
 public:
  /// Makes caches of S positions for each layer of each sequence. kernel, chapter 06's unless one
  /// is given, attends for calls of several tokens. Throws std::invalid_argument as
  /// CachedAttention's constructor does, and unless bits is 4 or 8.
  QuantizedAttention(std::span<const BlockSettings> layers, std::size_t S, std::size_t max_run_rows,
                     std::size_t sequences, std::size_t bits, AttentionKernel kernel = {});
  QuantizedAttention(const QuantizedAttention&) = delete;  // pass std::ref(it)

  /// caches[sequence][layer]
  std::vector<std::vector<QuantizedCache>> caches;

  /// The call itself. Throws as CachedAttention does.
  void operator()(const Projected& in, Matrix heads, const Trace& trace);

 private:
  void attend_floats(ConstMatrix q, const QuantizedCache& cache, const ScoreRule& rule, Matrix out);

  LayerTables layers_;
  QuantizedScratch scratch_;  // for one token
  Tensor<2> keys_, values_;   // [G·S, D] of one layer as floats, for several tokens
  AttentionKernel kernel_;
};

}  // namespace t2t
