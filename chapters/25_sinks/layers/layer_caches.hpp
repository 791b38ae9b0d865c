// Models whose layers differ: which layers read whose cache, which have no RoPE, and what their
// caches weigh.
//
//   bytes = Σ over owners of 2 · G · D · min(S, window) · b        b: bytes of an element
//
// NoPE layers attend without positions: their scores depend on what the tokens say, and only the
// causal mask tells them an order. A cache is as large as with RoPE. Chapter 08's block knows both
// kinds (BlockSettings::uses_rope); chapter 09's Config::layers mixes them. SmolLM3 leaves RoPE out
// of every fourth layer (Bakouch et al. 2025), after Yang et al. 2025, "RoPE to NoPE and Back
// Again".
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "09_language_model/config.hpp"

namespace t2t {

/// Whether each layer rotates q and k, when every step-th does not: layers step − 1, 2·step − 1 …
/// of L. Published lists called no_rope_layers have the same values: 1 for a layer *with* RoPE.
std::vector<bool> rope_but_every(std::size_t step, std::size_t L);

/// The config with RoPE in the layers that say so, and in no others. Throws std::invalid_argument
/// unless there is an entry for each layer, and as expect_config does.
Config with_rope_in(Config config, const std::vector<bool>& uses_rope);  // [L]

/// The owner of each layer's keys and values, when the last `readers` layers own none: each of them
/// reads the last owner of its kind, with a window or without, as in Gemma 3n. Throws
/// std::invalid_argument when an earlier layer of a reader's kind is missing.
std::vector<std::size_t> last_of_kind(std::span<const BlockSettings> layers, std::size_t readers);

/// Bytes of the caches of one sequence of S tokens, when a layer with a window keeps only the keys
/// of its window. (SharedCaches keeps all S.) Throws as expect_owners does.
double layer_cache_bytes(std::span<const BlockSettings> layers,
                         std::span<const std::size_t> owners,  // [L]
                         std::size_t S, double element_bytes);

/// L layers, as far as the size of their caches depends on them: of every `period`, the last sees
/// all keys, and the others a window, or all keys when `window` is 0.
std::vector<BlockSettings> alternating_layers(std::size_t L, std::size_t G, std::size_t D,
                                              std::size_t period, std::size_t window);

}  // namespace t2t
