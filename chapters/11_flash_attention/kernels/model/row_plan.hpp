// The rows of a pass on a device: new tokens of several sequences, cut into chunks that fit its
// scratch memory. Runs on the host.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "09_language_model/fast/state_options.hpp"

namespace t2t {

/// One chunk. The rows of a sequence are a run of consecutive positions.
struct PlannedRows {
  std::vector<int> ids, positions, sequences;  // [T]
  std::vector<int> wanted;                     // [N], the rows that want logits
  std::vector<Run> runs;

  std::size_t T() const { return ids.size(); }
};

/// Chunks of up to most_rows rows, in the order of `more`. lengths[s] tokens of sequence s have
/// been through the model.
std::vector<PlannedRows> plan_rows(std::span<const MoreTokens> more,
                                   std::span<const std::size_t> lengths, std::size_t most_rows);

}  // namespace t2t
