// What one rank of the grid trains: a shard of each matrix of its stage's blocks, on its own
// micro-batches.
//
//   pipeline     chapter 21's Stage, with its messages to the neighbouring stages
//   tensor       chapter 20's shards of the blocks, the embedding and the head, and their sums
//   data         the gradient of each own micro-batch apart, to be added over the data ranks
//
// Nothing here is new but the order: the model is cut into shards first, and each shard's model
// into stages, since a shard of a model is a model again, with fewer heads, hidden channels and
// tokens.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "13_training/trainer/trainer.hpp"
#include "19_ranks/data_parallel/held_bytes.hpp"
#include "20_split_models/tensor_parallel/shards.hpp"
#include "20_split_models/tensor_parallel/split_embedding.hpp"
#include "21_pipeline/schedule.hpp"
#include "21_pipeline/stages/stage.hpp"
#include "22_grid/grid.hpp"

namespace t2t {

class GridShard {
 public:
  /// Shard group.rank of group.size of the stage that is the grid's place. Of the whole model's
  /// weights, which must be floats, it copies its own. The ids must outlive it. Throws as
  /// trained_config_of, Stage and Windows do, and std::invalid_argument for fewer micro-batches
  /// than data ranks.
  GridShard(const RankGrid& grid, const ShardGroup& group, const Config& whole,
            const ModelWeights& weights, const TrainingOptions& options, std::span<const int> ids);
  GridShard(const GridShard&) = delete;  // its stage refers to its embedding
  GridShard& operator=(const GridShard&) = delete;

  /// The micro-batches of this rank, as parts of the step's batch.
  Range parts() const { return parts_; }
  /// What the stage computes in a step, in 1F1B's order; an operation's part counts the own ones.
  const std::vector<Operation>& operations() const { return operations_; }
  /// One of them. Returns Σ loss of a forward pass on the last stage, and 0 otherwise. A backward
  /// pass moves the micro-batch's gradient into its row.
  double run(const Operation& operation);
  /// Waits until all messages to other stages have been received.
  void finish() { stage_.finish(); }

  /// The gradients of the own micro-batches, [own parts][own elements]; then, once they have been
  /// added over the data ranks, the step's gradient in the first row.
  std::vector<std::vector<float>>& sums() { return sums_; }
  /// The tensors that it learns, and their gradients in the first row.
  const std::vector<ListedTensor>& weights() const { return optimizer_.weights(); }
  const std::vector<ListedTensor>& gradients() const { return gradients_; }
  /// All tensors of the whole model in its order, with the gradients that count in the norm: those
  /// that other shards or another stage count are empty.
  std::vector<ListedTensor> counted() const;

  std::size_t steps_done() const { return optimizer_.steps_done(); }
  /// As chapter 19's.
  StepReport clipped_step(double norm, double loss);

  /// Of the tensors that it learns, with a row of gradients for each micro-batch and one more.
  HeldBytes held_bytes();
  /// What the forward passes save, of the micro-batches in flight.
  std::size_t kept_bytes() const { return stage_.kept_bytes(); }

 private:
  std::vector<ListedTensor> learned(std::vector<ListedTensor> tensors) const;

  Config whole_;
  Shard shard_;
  TrainingOptions options_;
  Range parts_;
  std::vector<Operation> operations_;
  Windows windows_;
  Batch batch_;
  SplitEmbedding embedding_;
  Stage stage_;
  std::vector<ListedTensor> part_gradients_;  // of one micro-batch, as the stage adds them
  std::vector<std::vector<float>> sums_;
  std::vector<ListedTensor> gradients_;
  Optimizer optimizer_;
};

}  // namespace t2t
