// Training with expert parallelism: tokens are data parallel, and experts are divided.
//
//   own windows → forward and backward, with rows sent to experts and back in each layer
//   → all-reduce of all gradients but the experts' → the norm of all gradients → AdamW on the own
//
// An expert's gradient is complete on its rank, since the rows of all ranks came there. It is added
// to nothing and divided by nothing: each token's loss is already divided by the tokens of all
// ranks. (A program that divides each rank's loss by its own tokens only, and then takes the mean
// of gradients over the ranks, must divide the experts' by p as well.)
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "13_training/trainer/trainer.hpp"
#include "20_split_models/expert_parallel/expert_network.hpp"

namespace t2t {

class ExpertTrainer {
 public:
  /// All ranks must make it, with equal arguments: of the whole model's weights, which must be
  /// floats, each keeps its own. A step's batch is options.parts parts of options.B windows, one
  /// for each rank. The ids must outlive it. Throws as without_others_experts, Passes and Windows
  /// do, and std::invalid_argument for another number of parts.
  ExpertTrainer(const Communicator& ranks, const Config& config, const ModelWeights& weights,
                const TrainingOptions& options, std::span<const int> ids,
                const ExpertCapacity& capacity = {});

  /// One step, as Trainer's, with the same report on each rank, apart from the update_ratio, which
  /// is the own tensors'. All ranks must call it, and all throw std::runtime_error when the
  /// gradient is not finite, and as messages.hpp says.
  StepReport step();

  /// The rank's model, of which other ranks' experts are missing.
  const Model& model() const { return model_; }
  const ParallelExperts& experts() const { return experts_; }
  /// The gradients of the last step, after clipping: those of the own experts and, the same on each
  /// rank, of everything else.
  const std::vector<ListedTensor>& gradients() const { return gradients_list_; }

 private:
  double add_gradients();
  double squares_of_gradients() const;

  Communicator ranks_;
  TrainingOptions options_;
  Model model_;
  Windows windows_;
  Batch batch_;
  ParallelExperts experts_;
  Passes passes_;
  std::vector<KeptBlock> kept_;  // [L]
  ModelWeights gradients_;       // empty for other ranks' experts
  std::vector<ListedTensor> gradients_list_;
  Optimizer optimizer_;
};

}  // namespace t2t
