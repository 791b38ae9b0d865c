// The same training in three splits: data parallel, with a sharded optimizer, and fully sharded.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "13_training/trainer/trainer.hpp"
#include "19_ranks/sharded/sharded_costs.hpp"
#include "19_ranks/sharded/sharded_model.hpp"
#include "tensor.hpp"

namespace t2t {

/// The model that is trained, and how: one step has so many parts. Without clipping, because the
/// data parallel trainer takes chapter 13's norm, which is added in another order.
Config training_config();
TrainingOptions training_options(std::size_t parts, std::uint64_t seed, std::size_t steps);

/// All weights in one row. Of a model in shards, all ranks must call it.
std::vector<float> weights_of(const Model& model);
std::vector<float> weights_of(const ShardedModel& model);

/// The splits of this name: "data", "zero1", "fsdp", or "all" of them. Throws std::invalid_argument
/// for another name.
std::vector<TrainingSplit> splits_named(const std::string& name);

/// Trains a small model on the text, with one part of a batch per rank: on one rank that stores
/// everything, and on all ranks in each split. Shows what a rank sends in a step and stores, by
/// formula and as counted and measured, and the losses. All ranks must call it; rank 0 prints.
/// Returns the losses on rank 0, [steps, 1 + splits], in nats per byte. Throws std::runtime_error
/// when what was counted or measured is not the formula's.
Tensor<2> show_splits(const Communicator& world, const std::string& text, std::uint64_t seed,
                      const std::vector<TrainingSplit>& splits);

}  // namespace t2t
