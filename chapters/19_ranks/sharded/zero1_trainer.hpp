// ZeRO-1, the sharded optimizer: every rank has all weights and computes whole gradients, but keeps
// AdamW's two means only for its own shard of each tensor, and moves only that.
//
//   gradients of the own parts → reduce-scatter → the norm, over all ranks → AdamW on the own
//   shard → all-gather of the weights
//
// A ring's all-reduce is a reduce-scatter and an all-gather; the step stands between them. (ZeRO:
// "zero redundancy optimizer", Rajbhandari et al. 2020, "ZeRO: Memory Optimizations Toward Training
// Trillion Parameter Models", stage 1. A class of PyTorch has that paper's name for it, too.)
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <vector>

#include "19_ranks/collectives/pair_tree.hpp"
#include "19_ranks/data_parallel/data_trainer.hpp"
#include "19_ranks/sharded/shard_files.hpp"

namespace t2t {

class Zero1Trainer {
 public:
  /// As DataTrainer's: the same batches, and the same bits of each sum in the order of pairs.
  Zero1Trainer(const Communicator& ranks, Model model, const TrainingOptions& options,
               std::span<const int> ids, SumOrder order);

  /// One step, with the loss over the whole batch. All ranks must call it. Throws as norm_of_shards
  /// does, on all ranks at once.
  StepReport step();

  const Model& model() const { return model_; }
  /// The last step's gradient as the optimizer read it: this rank's chunk of each tensor.
  const std::vector<ListedTensor>& gradient() const { return own_gradients_; }
  HeldBytes held_bytes();

  /// Writes a checkpoint of shards, and goes on from one, which FsdpTrainer may have written. All
  /// ranks must call them; they throw as shard_files.hpp says. The options and the ids must be
  /// those of the run that was saved.
  void save(const std::filesystem::path& folder) {
    save_shards(ranks_, folder, steps_done(), state());
  }
  void resume(const std::filesystem::path& folder);
  std::size_t steps_done() const { return optimizer_.steps_done(); }

 private:
  double add_part(std::size_t part);
  void scatter_on_ring();
  void scatter_in_pairs();
  ShardState state();

  Communicator ranks_;
  TrainingOptions options_;
  SumOrder order_;
  Range parts_;  // of this rank
  Model model_;
  Windows windows_;
  Batch batch_;
  Gradients passes_;
  PairTree tree_;                      // which sums of this rank's parts are held
  std::vector<ModelWeights> sums_;     // and the sums: the one at place k is in sums_[k]
  std::vector<ListedTensor> weights_;  // all of them
  std::vector<ListedTensor> own_gradients_;
  Optimizer optimizer_;  // of the own shards
};

}  // namespace t2t
