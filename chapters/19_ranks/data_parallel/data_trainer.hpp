// Data parallel training: every rank has the whole model, and computes the gradients of some parts
// of each batch; the sum over all parts is an all-reduce, and then all ranks take the same step.
//
//   windows of the own parts → their gradients → all-reduce → AdamW, the same on each rank
//
// The weights stay equal bit by bit without ever being sent again, since all ranks start with the
// same weights and get the same bits of each sum. A part has its own windows and dropout by its
// number in the whole batch, whichever rank computes it, and its gradient begins at 0: only the
// order in which parts are joined can make a difference. (Li et al. 2020, "PyTorch Distributed:
// Experiences on Accelerating Data Parallel Training".)
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "13_training/trainer/trainer.hpp"
#include "19_ranks/collectives/range.hpp"
#include "19_ranks/data_parallel/held_bytes.hpp"
#include "19_ranks/start/communicator.hpp"

namespace t2t {

/// In which order the gradients of parts are added. `ring`: a rank's own one by one, then the
/// ranks' on a ring, which gives other bits on another number of ranks. `pairs`: in fixed pairs of
/// parts, which gives the same bits on any number.
enum class SumOrder { ring, pairs };

/// The parts of a batch that this rank computes. Throws std::invalid_argument for fewer than ranks.
Range own_parts(const Communicator& ranks, std::size_t parts);

/// The loss over the whole batch, given each rank's sums of its own parts' losses, and 0 for those
/// of others. The same on each rank; all must call it.
double mean_loss(const Communicator& ranks, const std::vector<double>& losses,
                 const TrainingOptions& options);

std::size_t elements_of(const std::vector<ListedTensor>& list);
/// A list of the same tensors, whose rows lie in one row, one after the other.
std::vector<ListedTensor> listed_in(Row all, std::vector<ListedTensor> list);

/// Gives every rank rank 0's weights, and returns the model's tensors. All ranks must call it.
std::vector<ListedTensor> equal_weights(const Communicator& ranks, Model& model);

class DataTrainer {
 public:
  /// All ranks must make it, with equal arguments but the model's weights: all start with rank 0's.
  /// A step's batch is options.parts parts of options.B windows. The ids must outlive it. Throws as
  /// Gradients, Windows and Optimizer do, and std::invalid_argument for fewer parts than ranks.
  DataTrainer(const Communicator& ranks, Model model, const TrainingOptions& options,
              std::span<const int> ids, SumOrder order);

  /// One step, with the loss over the whole batch. All ranks must call it, and all throw
  /// std::runtime_error when the gradient is not finite, and as messages.hpp says.
  StepReport step();

  const Model& model() const { return model_; }
  /// The gradient of the last step, summed over all parts: all tensors, one after the other.
  ConstRow gradient() const { return sums_[0]; }
  /// The gradients are those of one part, and a row to be summed for each of the rank's parts.
  HeldBytes held_bytes();

 private:
  double run_part(std::size_t part, Row gradient);

  Communicator ranks_;
  TrainingOptions options_;
  SumOrder order_;
  Range parts_;  // of this rank
  Model model_;
  Windows windows_;
  Batch batch_;
  Gradients passes_;
  ModelWeights gradients_;                // of one part
  std::vector<std::vector<float>> sums_;  // [own parts] of all elements: a copy of the model each
  Optimizer optimizer_;
};

}  // namespace t2t
