// A training on a grid that can be killed at any moment and goes on later, on another grid.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "22_grid/shows/grid_run.hpp"

namespace t2t {

struct GridTrainFlags {
  std::string folder;                  // of the checkpoints
  std::size_t steps = 40, every = 10;  // from one checkpoint to the next
};

/// Throws std::invalid_argument for a folder that has files but no such training, or one of another
/// model, batch, seed or number of steps.
void expect_grid_train(const GridTrainFlags& flags, const GridTask& task);

/// Trains from the folder's checkpoint on, if it has one. Rank 0 prints the losses and at the end
/// the last one in full. Each rank has one thread: without tensor ranks, or with a number of
/// shards, the losses have the same bits on every grid, however often the training was killed. All
/// ranks must call it. Returns the exit status. Throws as part_files.hpp says, and
/// std::runtime_error for a folder in which another program is at work.
int train_on_grid(const Communicator& world, const GridShape& shape, const GridTask& task,
                  const GridTrainFlags& flags, const std::vector<int>& ids);

}  // namespace t2t
