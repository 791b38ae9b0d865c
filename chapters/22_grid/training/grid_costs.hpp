// What a rank of the grid sends in a step and stores, by formula: nothing but the formulas of
// chapters 19 to 21, each on the part of the model that the rank has.
//
//   tensor   4 sums of B·T·C floats in each of its blocks and micro-batches, 1 for the embedding
//            and 1 for the head, and the values of the divided loss
//   stages   B·T·C floats to each neighbour for each of its micro-batches, and its rows of a tied
//            table
//   data     the gradients of its shards' elements, in fixed pairs of micro-batches
//   values   the losses, and what the norm needs
#pragma once

#include "13_training/trainer/trainer.hpp"
#include "19_ranks/counting/counts.hpp"
#include "19_ranks/data_parallel/held_bytes.hpp"
#include "22_grid/grid.hpp"

namespace t2t {

/// By the direction in which it is sent.
struct GridSent {
  Sent tensor = {}, stages = {}, data = {}, values = {};

  bool operator==(const GridSent&) const = default;
  Sent together() const { return tensor + stages + data + values; }
};

/// In a step of the training that GridTrainer makes of these arguments, at this place.
GridSent grid_step_cost(const Config& whole, const GridShape& shape, const GridPlace& place,
                        const TrainingOptions& options, std::size_t shards = 0);

/// Bytes of the tensors that a rank learns, and of what its forward passes save.
struct GridMemory {
  HeldBytes held;
  std::size_t kept;
  bool operator==(const GridMemory&) const = default;
};
GridMemory grid_memory(const Config& whole, const GridShape& shape, const GridPlace& place,
                       const TrainingOptions& options, std::size_t shards = 0);

}  // namespace t2t
