// Training: the same step again and again.
//
//   windows of text → loss and gradients, in parts if the batch is large → the gradients' norm
//   → AdamW with the step's rate → the next step
//
// A step depends only on the model, the optimizer's two running means and the number of the step: a
// run that continues from these gives the same bits as one that never stopped.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "13_training/backward/model_backward.hpp"
#include "13_training/text/passages.hpp"
#include "13_training/trainer/optimizer.hpp"

namespace t2t {

struct TrainingOptions {
  std::size_t B = 16;     // windows whose gradients are computed at once
  std::size_t T = 256;    // tokens of a window
  std::size_t parts = 1;  // of a step's batch: B·parts windows per step
  Schedule schedule = {};
  AdamW adamw = {};
  double clip = 1;         // the gradients' norm at most; 0: any
  float dropout = 0;       // share dropped in training (dropout.hpp)
  std::uint64_t seed = 1;  // of the windows' order and of dropout
};

/// What a caller can change about training. Each function may be empty.
struct TrainingHooks {
  /// Whether a matrix or table is learned. The others stay as they are, and have no place in
  /// weights(), means() and squares().
  std::function<bool(const TensorInfo&)> learned = {};
  /// Changes each batch before it is learned or measured, such as by masking tokens. A step's batch
  /// must then be of one part.
  std::function<void(Batch& batch, std::uint64_t seed)> prepare = {};
  TrainingFunctions functions = {};
};

/// Once it is made, neither a step nor loss_of allocates anything.
class Trainer {
 public:
  /// The ids must outlive it. Throws as Gradients and Windows do, and std::invalid_argument when
  /// parts is 0, a beta or the dropout is not in [0, 1), eps is not above 0, and when a batch of
  /// several parts is to be prepared.
  Trainer(Model model, const TrainingOptions& options, std::span<const int> ids,
          TrainingHooks hooks = {});

  /// One step. Throws std::runtime_error, naming the first tensor, when a gradient is not finite or
  /// their norm is too large for a float; the weights are then as they were before the step.
  StepReport step();
  /// The same on a batch of the caller's, with the mean over its targets that are to be learned.
  /// Throws std::invalid_argument when there is none.
  StepReport step_on(const Batch& batch);

  /// Mean loss without dropout over a text, all of it or its first windows of T tokens; windows
  /// follow one another, and each is read alone. Throws std::invalid_argument when there is no
  /// token to predict.
  double loss_of(std::span<const int> ids, std::size_t most_windows = std::size_t(-1));

  const Model& model() const { return model_; }
  const TrainingOptions& options() const { return options_; }
  std::size_t steps_done() const { return optimizer_.steps_done(); }

  /// What a checkpoint holds: the weights, the running means and squares, in one order of tensors.
  const std::vector<ListedTensor>& weights() const { return optimizer_.weights(); }
  std::vector<ListedTensor>& means() { return optimizer_.means(); }
  std::vector<ListedTensor>& squares() { return optimizer_.squares(); }
  void continue_from(std::size_t steps_done) { optimizer_.continue_from(steps_done); }

  /// Bytes: gradients and the optimizer's state, what the forward pass saves, scratch.
  struct Memory {
    std::size_t weights, gradients, optimizer, kept, scratch;
  };
  Memory memory() const;

 private:
  double add_gradients(const Batch& batch, std::size_t part, float scale);

  TrainingOptions options_;
  TrainingHooks hooks_;
  Model model_;
  Windows windows_;
  Batch batch_;
  Gradients passes_;
  ModelWeights gradients_;
  Optimizer optimizer_;
};

}  // namespace t2t
