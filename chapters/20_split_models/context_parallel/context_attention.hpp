// Chapter 08's attention over a sequence that is divided among ranks, by blocks: the fast form of
// ring_attention.hpp.
//
//   p times: for each tile of queries and each tile of the keys that are here
//     scores = q·kᵀ / √D      m ← max(m, max scores)      kept = e^(m before − m)
//     l ← kept·l + Σ e^(scores − m)      o ← kept·o + e^(scores − m)·v
//   then the keys go on to the next rank; after the last block: heads = o / l
//
// A rank stores two blocks of keys and values, one to send and one to receive, and what its own
// queries have met so far: a p-th of what one rank would need. Only RoPE's table has a row for each
// position on every rank. This is for a prefill: keys and values are not kept for later tokens.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "08_block/fast/layer_tables.hpp"
#include "19_ranks/start/communicator.hpp"
#include "20_split_models/context_parallel/token_ranges.hpp"

namespace t2t {

class ContextAttention {
 public:
  /// For T tokens, divided among the ranks in a zigzag, and one layer after the other. Throws
  /// std::invalid_argument as LayerTables does, for fewer than two tokens for each rank, and,
  /// naming the setting, for windows, capped scores and layers of different heads.
  ContextAttention(const Communicator& ranks, std::span<const BlockSettings> layers, std::size_t T);
  ContextAttention(const ContextAttention&) = delete;  // pass std::ref(it), not a copy

  /// The runs of a call: the rank's two ranges of tokens, each at its own position.
  Runs runs() const { return runs_; }
  /// The call itself, with all rows of this rank. All ranks must make it. Throws as messages.hpp
  /// says.
  void operator()(const Projected& in, Matrix heads, const Trace& trace);

  /// Of everything that it has allocated, if all layers share one table of angles.
  std::size_t bytes() const;

 private:
  /// Some rank's keys and values, one range after the other.
  struct KeyBlock {
    std::vector<Range> ranges;
    Tensor<2> keys_values;  // [most own tokens, 2·G·D]
  };
  void store(const Projected& in);
  void pass_on(std::size_t step);
  void meet_block(const Projected& in, Matrix heads);
  void meet_ranges(const Projected& in, Matrix heads, std::size_t query, std::size_t first_query,
                   const Range& keys, std::size_t first_key);
  void meet_tile(Matrix q, Matrix keys_values, std::size_t h, std::size_t first_query,
                 std::size_t visible, Matrix out);

  Communicator ranks_;
  BlockSettings settings_;
  std::size_t T_;
  LayerTables tables_;
  std::vector<Range> own_;
  std::vector<Run> runs_;
  KeyBlock here_, next_;
  Tensor<2> highest_, sums_;  // [own tokens, H]
  Tensor<2> scores_;          // [queries of a tile, keys of a tile]
};

/// The same by formula.
std::size_t context_attention_bytes(const BlockSettings& settings, std::size_t T, std::size_t size,
                                    std::size_t rank);

}  // namespace t2t
