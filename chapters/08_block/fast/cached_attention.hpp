// This chapter's attention function. Each sequence has a cache for each layer; new queries attend
// to all keys and values in their sequence's cache.
//
//   for each sequence of a call, at its own position:
//     rotate q and k (RoPE)      append k and v to this layer's cache      heads = kernel(q, cache)
//
// The kernel, which computes heads, attention's output, from q and the cache, is chapter 06's
// unless the caller gives another (chapter 11's flash attention). Where keys and values lie
// elsewhere, in pages (chapter 15) or in no cache at all (chapter 13), another Attention replaces
// this one.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "05_kv_cache/kv_cache.hpp"
#include "06_gqa/fast/grouped_rows.hpp"
#include "08_block/fast/layer_tables.hpp"

namespace t2t {

// [kernel]
/// Attention of one sequence's queries to `heads`, the keys and values in its cache. It writes
/// attention's output, as grouped_attention_rows does, but has scratch memory of its own.
using AttentionKernel = std::function<void(ConstMatrix q, const KeyValueHeads& heads,
                                           const ScoreRule& rule, Matrix out)>;

/// Chapter 06's kernel for these layers, with scratch memory for the widest of them.
AttentionKernel grouped_kernel(std::span<const BlockSettings> layers, std::size_t S,
                               std::size_t max_run_rows);
// [/kernel]

class CachedAttention {
 public:
  /// Makes caches of S positions for each layer of each sequence. A call may have up to
  /// max_run_rows rows of one sequence. It must not use more OpenMP threads than thread_count()
  /// returns now. Throws std::invalid_argument as LayerTables does, and when sequences is 0.
  CachedAttention(std::span<const BlockSettings> layers, std::size_t S, std::size_t max_run_rows,
                  std::size_t sequences = 1, AttentionKernel kernel = {});
  CachedAttention(const BlockSettings& settings, std::size_t S, std::size_t max_run_rows)
      : CachedAttention(std::span(&settings, 1), S, max_run_rows) {}
  CachedAttention(const CachedAttention&) = delete;  // pass std::ref(it), not a copy

  /// caches[sequence][layer], [G, S, D] each.
  std::vector<std::vector<KvCache>> caches;

  /// The call itself. Throws std::invalid_argument as LayerTables does and for a run that begins
  /// after the end of its sequence's cache, both before anything is written. If the kernel throws,
  /// the caches already hold the new rows.
  void operator()(const Projected& in, Matrix heads, const Trace& trace);

 private:
  LayerTables layers_;
  AttentionKernel kernel_;
};

}  // namespace t2t
