// A training on many ranks that can be killed at any moment and goes on later, with another number
// of ranks or another split.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "19_ranks/start/communicator.hpp"

namespace t2t {

struct TrainFlags {
  std::string folder;                  // of the checkpoints
  std::size_t steps = 60, every = 10;  // from one checkpoint to the next
};

/// Throws std::invalid_argument for a split other than zero1 or fsdp, which store shards, for more
/// ranks than a batch has parts, and for a folder that has files but no such training, or one of
/// another seed or number of steps.
void expect_train_task(const TrainFlags& flags, std::size_t ranks, const std::string& split,
                       std::uint64_t seed);

/// Trains the small model of show_splits.hpp, from the folder's checkpoint on if it has one. Rank 0
/// prints the losses, and at the end a checksum of all weights: it is the same for any number of
/// ranks, either split, and however often the training was killed. Each rank has one thread. All
/// ranks must call it. Returns
/// the exit status. Throws as shard_files.hpp says, and std::runtime_error for a folder in which
/// another program is at work.
int train_in_folder(const Communicator& world, const TrainFlags& flags, const std::string& split,
                    const std::string& text, std::uint64_t seed);

}  // namespace t2t
