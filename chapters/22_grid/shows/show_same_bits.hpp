// What the same bits on every number of ranks cost, and a text that is generated with them.
#pragma once

#include "22_grid/shows/grid_run.hpp"

namespace t2t {

/// What the sums of tensor parallelism send in a step on one line of ranks, by formula: on rings,
/// and in shards. Prints a table.
void show_bits_costs();

/// A text of the model before its training, on one rank and on each line of tensor ranks. All ranks
/// must call it; rank 0 prints. Returns rank 0's logits, [tokens, V].
Tensor<2> show_team_text(const RankGrid& grid, std::uint64_t seed);

/// What a step takes on one rank, undivided and in shards, in processor time, for a narrow model
/// and a wide one.
void show_bits_times(const std::vector<int>& ids, std::uint64_t seed);

}  // namespace t2t
