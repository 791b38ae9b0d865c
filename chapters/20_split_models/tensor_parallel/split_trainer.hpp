// Training of a model that is divided among ranks: all ranks read the same batch, and each moves
// its own weights.
//
//   batch → SplitGradients, 4·L + 2 sums over ranks → the norm of all gradients → AdamW on the own
//
// AdamW treats every weight by itself, and needs nothing of other ranks but the factor that clips
// the gradient: the norm is over all ranks' gradients, and what several ranks have, such as a
// norm's gain, counts once. Those weights stay equal bit by bit, since their gradients do.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "13_training/trainer/trainer.hpp"
#include "20_split_models/tensor_parallel/split_gradients.hpp"

namespace t2t {

class SplitTrainer {
 public:
  /// All ranks must make it, with equal arguments: of the whole model's weights, which must be
  /// floats, each keeps its own. The ids must outlive it. Throws as SplitGradients and Windows do,
  /// and std::invalid_argument when options.parts is 0.
  SplitTrainer(const Communicator& ranks, const Config& whole, const ModelWeights& weights,
               const TrainingOptions& options, std::span<const int> ids);

  /// One step, as Trainer's, with the same report on each rank. All ranks must call it, and all
  /// throw std::runtime_error when the gradient is not finite, and as messages.hpp says.
  StepReport step();

  /// The rank's own model.
  const Model& model() const { return model_; }

 private:
  double squares_of_gradients() const;

  Communicator ranks_;
  TrainingOptions options_;
  Model model_;
  Windows windows_;
  Batch batch_;
  SplitGradients passes_;
  ModelWeights gradients_;
  std::vector<ListedTensor> gradients_list_;  // that this rank learns
  Optimizer optimizer_;                       // of these
};

}  // namespace t2t
