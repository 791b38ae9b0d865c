// Keys and values shared across layers: some layers own a cache, and the others read the cache of
// an earlier layer instead of making keys and values of their own.
//
//   owner ℓ    rotate q and k     append k and v to its cache      heads = kernel(q, its cache)
//   reader ℓ   rotate q           nothing is appended              heads = kernel(q, owner's cache)
//
// In each pass the owner runs first, so its cache already holds the keys of the pass's own tokens.
// A reader's queries stand at the positions where the pass began, and not behind what the owner has
// appended. Memory falls by the share of readers (layer_caches.hpp). Brandon et al. 2024, "Reducing
// Transformer Key-Value Cache Size with Cross-Layer Attention"; Gemma 3n and 4 do it in their last
// layers.
//
// Chapter 08's block computes k and v in every layer, also in readers, where they are not read: a
// model made for sharing leaves these weights out. For chapter 09's StateOptions::memory.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "05_kv_cache/kv_cache.hpp"
#include "08_block/fast/layer_tables.hpp"

namespace t2t {

/// As chapter 08's AttentionKernel, for a kernel whose layers differ in more than the rule: here in
/// their sinks.
using LayerKernel = std::function<void(std::size_t layer, ConstMatrix q, const KeyValueHeads& heads,
                                       const ScoreRule& rule, Matrix out)>;

/// Throws std::invalid_argument unless there is an owner for each layer: itself, or an earlier
/// layer that owns its cache and has the same G, D and RoPE.
void expect_owners(std::span<const BlockSettings> layers, std::span<const std::size_t> owners);

class SharedCaches {
 public:
  /// Makes caches of S positions for each owner of each sequence. owners[l] is the layer whose
  /// cache layer l reads; without owners, each layer owns one. Without a kernel, chapter 06's.
  /// Throws as LayerTables and expect_owners do, and std::invalid_argument when sequences is 0.
  SharedCaches(std::span<const BlockSettings> layers, std::vector<std::size_t> owners,
               std::size_t S, std::size_t max_run_rows, std::size_t sequences = 1,
               LayerKernel kernel = {});
  SharedCaches(const SharedCaches&) = delete;  // pass std::ref(it), not a copy

  /// caches[sequence][owner], [G, S, D] each; a reader's place holds no positions.
  std::vector<std::vector<KvCache>> caches;

  /// The call itself. Throws std::invalid_argument as CachedAttention does, and when a reader is
  /// called before its owner in the same pass.
  void operator()(const Projected& in, Matrix heads, const Trace& trace);

  /// Bytes of all caches.
  std::size_t bytes() const;

 private:
  LayerTables tables_;
  std::vector<std::size_t> owners_;  // [L]
  LayerKernel kernel_;
};

}  // namespace t2t
