// Training of a model that is cut into stages, one on each rank.
//
//   the schedule's operations, messages between neighbours → the tied table's gradients, summed
//   → the loss, from the last stage → the norm, over all stages → AdamW on the own tensors
//
// Each tensor lies on one stage, which adds the gradients of the micro-batches in their order, as
// one process does. The norm is chapter 19's, which has the same bits however tensors are divided.
// Losses and weights are therefore the same bits on any number of stages, in both schedules. Only a
// tied table is a sum over two stages: the embedding's gradient of all micro-batches plus the
// head's of all. A single stage adds them in this order, too; chapter 13's trainer adds both of a
// micro-batch before those of the next one.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <vector>

#include "13_training/trainer/trainer.hpp"
#include "21_pipeline/checkpoint/part_files.hpp"
#include "21_pipeline/schedule.hpp"
#include "21_pipeline/stages/stage.hpp"

namespace t2t {

/// Both copies of a tied table, "embedding" on the first stage and "head" on the last one, get the
/// sum of their gradients. All stages must call it; throws as messages.hpp says.
void join_tied_tables(const Communicator& stages, const std::vector<ListedTensor>& gradients);

class PipelineTrainer {
 public:
  /// All ranks must make it, with equal arguments: of the whole model's weights, which must be
  /// floats, each keeps its own. A step's batch is options.parts micro-batches of options.B
  /// windows. The ids must outlive it. Throws as operations_of, Stage, Windows and Optimizer do.
  PipelineTrainer(const Communicator& ranks, const Config& whole, const ModelWeights& weights,
                  const TrainingOptions& options, std::span<const int> ids,
                  PipelineSchedule schedule);

  /// One step, as Trainer's, with the same loss and norm on each rank; the update_ratio is the own
  /// tensors'. All ranks must call it. Throws as norm_of_shards does, on all ranks at once, and as
  /// messages.hpp says.
  StepReport step();

  /// The tensors that this rank learns, and the last step's gradient as the optimizer read it.
  const std::vector<ListedTensor>& weights() const { return optimizer_.weights(); }
  const std::vector<ListedTensor>& gradients() const { return gradients_; }
  const Stage& stage() const { return stage_; }
  const std::vector<Operation>& operations() const { return operations_; }

  /// Writes a checkpoint, and goes on from one, which any number of stages may have written, or a
  /// grid of chapter 22. All ranks must call them; they throw as part_files.hpp says. The options
  /// and the ids must be those of the run that was saved.
  void save(const std::filesystem::path& folder) {
    save_parts(ranks_, folder, steps_done(), state());
  }
  void resume(const std::filesystem::path& folder) {
    optimizer_.continue_from(load_parts(ranks_, folder, state()));
  }
  std::size_t steps_done() const { return optimizer_.steps_done(); }

 private:
  PartState state();
  double run(const Operation& operation);
  double loss_of_last(double loss) const;

  Communicator ranks_;
  Config whole_;
  TrainingOptions options_;
  std::vector<Operation> operations_;
  Windows windows_;
  Batch batch_;
  Stage stage_;
  std::vector<ListedTensor> gradients_;  // of the own tensors
  std::vector<ListedTensor> counted_;    // in the norm
  Optimizer optimizer_;
};

}  // namespace t2t
