// Fully sharded data parallel training, FSDP, which is ZeRO's stage 3: weights, gradients and the
// optimizer's means are all sharded. Between two uses, no rank stores a whole block.
//
// A step has ⌈parts/p⌉ rounds, in each of which every rank computes one part: rank r has part
// round·p + r. Consecutive parts thus arrive at each shard together, and few sums are held. The
// order of pairs then costs no byte more than a ring. (Rajbhandari et al. 2020; Zhao et al. 2023,
// "PyTorch FSDP: Experiences on Scaling Fully Sharded Data Parallel".)
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <vector>

#include "19_ranks/sharded/shard_files.hpp"
#include "19_ranks/sharded/sharded_passes.hpp"

namespace t2t {

class FsdpTrainer {
 public:
  /// As DataTrainer's: the same batches, and the same bits of each sum in the order of pairs. The
  /// whole model is needed only here. Throws also as ShardedModel and ShardedPasses do.
  FsdpTrainer(const Communicator& ranks, Model model, const TrainingOptions& options,
              std::span<const int> ids, SumOrder order);

  /// One step, with the loss over the whole batch. All ranks must call it. Throws as norm_of_shards
  /// does, on all ranks at once.
  StepReport step();

  const ShardedModel& model() const { return model_; }
  /// The last step's gradient as the optimizer read it: this rank's chunk of each tensor.
  const std::vector<ListedTensor>& gradient() const { return model_.gradient_sums(); }
  HeldBytes held_bytes();

  /// Writes a checkpoint of shards, and goes on from one. All ranks must call them; they throw as
  /// shard_files.hpp says. The options and the ids must be those of the run that was saved.
  void save(const std::filesystem::path& folder) {
    save_shards(ranks_, folder, steps_done(), state());
  }
  void resume(const std::filesystem::path& folder);
  std::size_t steps_done() const { return optimizer_.steps_done(); }

 private:
  double run_round(std::size_t part);
  ShardState state();

  Communicator ranks_;
  TrainingOptions options_;
  ShardedModel model_;
  ShardedPasses passes_;
  Windows windows_;
  Batch batch_;
  Optimizer optimizer_;  // of the own shards
};

}  // namespace t2t
