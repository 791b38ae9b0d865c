// What one rank of the grid trains: a shard of each matrix of its stage's blocks, on its own
// micro-batches.
//
//   pipeline     chapter 21's Stage, with its messages to the neighbouring stages
//   tensor       chapter 20's shards of the blocks, the embedding and the head, and their sums
//   experts      the mixtures of experts/, whose rows come from other ranks' micro-batches, too
//   data         the gradient of each micro-batch apart, to be added over the ranks that have the
//                others: over the replicas, or, an expert's, over the data ranks
//
// Little here is new but the order: the model is cut into shards first, and each shard's model
// into stages, since a shard of a model is a model again, with fewer heads, hidden channels and
// tokens.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "13_training/trainer/trainer.hpp"
#include "19_ranks/data_parallel/held_bytes.hpp"
#include "20_split_models/tensor_parallel/shards.hpp"
#include "20_split_models/tensor_parallel/split_embedding.hpp"
#include "21_pipeline/checkpoint/part_files.hpp"
#include "21_pipeline/schedule.hpp"
#include "21_pipeline/stages/stage.hpp"
#include "22_grid/experts/grid_experts.hpp"
#include "22_grid/experts/mixture_shard.hpp"
#include "22_grid/grid.hpp"

namespace t2t {

/// Micro-batches in flight on a rank that computes so many of them in a step.
std::size_t slots_at(const GridShape& shape, const GridPlace& place, const GridBalance& balance,
                     std::size_t own_parts);

class GridShard {
 public:
  /// Shard group.rank of group.size of the stage that is the grid's place. Of the whole model's
  /// weights, which must be floats, it copies its own. The grid and the ids must outlive it. Throws
  /// as grid_config_of, Stage and Windows do, and std::invalid_argument for fewer micro-batches
  /// than data ranks, and on several expert ranks for micro-batches that replicas can't have
  /// equally many of.
  GridShard(const RankGrid& grid, const ShardGroup& group, const Config& whole,
            const ModelWeights& weights, const TrainingOptions& options, std::span<const int> ids,
            const GridBalance& balance = {});
  GridShard(const GridShard&) = delete;  // its stage refers to its embedding
  GridShard& operator=(const GridShard&) = delete;

  /// The micro-batches of this rank, as parts of the step's batch.
  Range parts() const { return parts_; }
  /// What the stage computes in a step, in 1F1B's order, or in GPipe's if the balance waits for
  /// counts; an operation's part counts the own ones.
  const std::vector<Operation>& operations() const { return operations_; }
  /// Before the first of them.
  void begin_step();
  /// One of them. Returns Σ loss of a forward pass on the last stage, and 0 otherwise. Both
  /// passes move what they have added to the micro-batch's gradient into its row, and the gradients
  /// of experts into those of the micro-batches whose rows came.
  double run(const Operation& operation);
  /// Waits until all messages to other stages have been received.
  void finish() { stage_.finish(); }

  /// The gradients of the own micro-batches, [own parts][own elements]; then, once they have been
  /// added over the replicas, the step's gradient in the first row. Of experts, those of the
  /// micro-batches of all expert ranks, to be added over the data ranks; without experts no rows.
  std::vector<std::vector<float>>& sums() { return sums_; }
  std::vector<std::vector<float>>& expert_sums() { return expert_sums_; }
  /// The tensors that it learns, and their gradients in the first rows.
  const std::vector<ListedTensor>& weights() const { return optimizer_.weights(); }
  const std::vector<ListedTensor>& gradients() const { return gradients_; }
  /// All tensors of the whole model in its order, with the gradients that count in the norm: those
  /// that other shards, another stage or another expert rank count are empty.
  std::vector<ListedTensor> counted() const;
  /// The mixtures, or null.
  const GridExperts* experts() const { return experts_.get(); }

  std::size_t steps_done() const { return optimizer_.steps_done(); }
  /// As chapter 19's.
  StepReport clipped_step(double norm, double loss);

  /// Appends what a checkpoint holds of this shard: all that it learns, or only what this rank
  /// writes, since the ranks that have the same tensors share them out.
  void append_state(PartState& state, bool to_write);
  void continue_from(std::size_t steps_done) { optimizer_.continue_from(steps_done); }

  /// Of the tensors that it learns, with a row of gradients for each micro-batch and one more.
  HeldBytes held_bytes();
  /// What the forward passes save, of the micro-batches in flight; rows for experts not counted.
  std::size_t kept_bytes() const { return stage_.kept_bytes(); }

 private:
  std::unique_ptr<GridExperts> make_experts(const ShardGroup& group, const GridBalance& balance);
  std::vector<ListedTensor> learned(std::vector<ListedTensor> tensors) const;
  std::vector<ListedTensor> learned(std::vector<ListedTensor> tensors, bool of_experts) const;
  std::vector<ListedTensor> in_first_rows();
  void move_gradients(Operation::Pass pass, std::size_t part);
  bool is_written_here(const TensorInfo& info, std::size_t number) const;
  void move_expert_gradients(std::size_t layer, std::size_t sender, std::size_t part);

  const RankGrid& grid_;
  Config whole_;
  Shard shard_;
  TrainingOptions options_;
  Range parts_;
  std::vector<Operation> operations_;
  bool shares_counts_;
  Windows windows_;
  Batch batch_;
  SplitEmbedding embedding_;
  std::unique_ptr<GridExperts> experts_;
  Stage stage_;
  std::vector<ListedTensor> part_gradients_;    // of one micro-batch, as the stage adds them
  std::vector<ListedTensor> expert_gradients_;  // the same of experts
  std::vector<std::vector<float>> sums_, expert_sums_;
  std::vector<ListedTensor> gradients_;
  Optimizer optimizer_;
};

}  // namespace t2t
