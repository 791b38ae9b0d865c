// What every attention needs to know about a model's layers, wherever it keeps keys and values:
// each layer's RoPE table, and the largest call.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "08_block/fast/block_rows.hpp"

namespace t2t {

class LayerTables {
 public:
  /// For sequences of at most S positions, and calls with at most max_run_rows rows of one
  /// sequence. A call must not use more OpenMP threads than thread_count() returns now. Throws
  /// std::invalid_argument as expect_settings does, for no layers, and when S or max_run_rows is 0.
  LayerTables(std::span<const BlockSettings> layers, std::size_t S, std::size_t max_run_rows);

  /// The angles of a layer: [S, D/2], or empty without RoPE.
  const RopeTable& table(std::size_t layer) const { return tables_[table_of_[layer]]; }

  /// If the block uses RoPE, rotates q and k by the positions of their runs, and tells the trace.
  void rotate(const Projected& in, const Trace& trace) const;

  /// Throws std::invalid_argument if a shape differs from what the block's settings say; if the
  /// runs don't add up to q's rows, or one names a sequence that is missing or comes twice, has no
  /// row or more than max_run_rows, or goes beyond position S − 1; if the layer does not exist or
  /// wasn't made for this block's H, G, D and RoPE; or if thread_count() has grown.
  void expect_call(const Projected& in, ConstMatrix heads, std::size_t sequences) const;

 private:
  void expect_block(const Block& block) const;

  std::size_t S_, max_run_rows_, threads_;
  std::vector<BlockSettings> layers_;  // [L]
  std::vector<RopeTable> tables_;      // [S, D/2] each; empty without RoPE
  std::vector<std::size_t> table_of_;  // [L]: layers of equal D and frequencies share a table
};

/// Throws std::invalid_argument when a run begins after the end of what its sequence has so far.
void expect_no_gap(const Run& run, std::size_t length);

}  // namespace t2t
