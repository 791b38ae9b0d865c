// What a rank of the grid sends in a step and stores, by formula: nothing but the formulas of
// chapters 19 to 21, each on the part of the model that the rank has.
//
//   tensor   4 sums of B·T·C floats in each of its blocks and micro-batches, 1 for the embedding
//            and 1 for the head, and the values of the divided loss; with experts also 1 of B·T·k
//            floats in each block, for the gradients of the choices' weights
//   stages   B·T·C floats to each neighbour for each of its micro-batches, and its rows of a tied
//            table
//   data     the gradients of its shards' elements, in fixed pairs of micro-batches: over the
//            replicas, and those of experts over the data ranks
//   experts  in each block and micro-batch a count for each expert of another rank, and 2 rows of C
//            floats for each row that goes to another rank or comes from one: forward the row or
//            its result, backward their gradients
//   values   the losses, what the norm needs, and the counts of choices for Switch's loss
#pragma once

#include "13_training/trainer/trainer.hpp"
#include "19_ranks/counting/counts.hpp"
#include "19_ranks/data_parallel/held_bytes.hpp"
#include "22_grid/experts/grid_experts.hpp"
#include "22_grid/grid.hpp"

namespace t2t {

/// By the direction in which it is sent.
struct GridSent {
  Sent tensor = {}, stages = {}, data = {}, experts = {}, values = {};

  bool operator==(const GridSent&) const = default;
  Sent together() const { return tensor + stages + data + experts + values; }
};

/// In a step of the training that GridTrainer makes of these arguments, at this place. How many
/// rows go to experts depends on the text: `rows` are the trainer's rows_exchanged.
GridSent grid_step_cost(const Config& whole, const GridShape& shape, const GridPlace& place,
                        const TrainingOptions& options, std::size_t shards = 0,
                        const GridBalance& balance = {}, std::size_t rows = 0);

/// Bytes of the tensors that a rank learns, and of what its forward passes save. Rows that experts
/// save are not in it, since their number depends on the text.
struct GridMemory {
  HeldBytes held;
  std::size_t kept;
  bool operator==(const GridMemory&) const = default;
};
GridMemory grid_memory(const Config& whole, const GridShape& shape, const GridPlace& place,
                       const TrainingOptions& options, std::size_t shards = 0,
                       const GridBalance& balance = {});

}  // namespace t2t
