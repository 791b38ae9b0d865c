// Training: the same step again and again.
//
//   windows of text → loss and gradients, in parts if the batch is large → the gradients' norm
//   → AdamW with the step's rate → the next step
//
// Everything that a step depends on is the model, the optimizer's two running means and the number
// of the step: a run that continues from these gives the same bits as one that never stopped.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "13_training/adamw.hpp"
#include "13_training/model_backward.hpp"
#include "13_training/passages.hpp"
#include "13_training/schedule.hpp"

namespace t2t {

struct TrainingOptions {
  std::size_t B = 16;     // windows whose gradients are made at once
  std::size_t T = 256;    // tokens of a window
  std::size_t parts = 1;  // of a step's batch: B·parts windows a step
  Schedule schedule = {};
  AdamW adamw = {};
  double clip = 1;         // the gradients' norm at most; 0: any
  std::uint64_t seed = 1;  // of the windows' order
};

/// What a step saw.
struct StepReport {
  std::size_t n;         // the step, from 1
  double loss;           // mean over its tokens, before the step, in nats
  double gradient_norm;  // before clipping
  float rate;
  double update_ratio;  // size of the step in the matrices, as a share of theirs
};

class Trainer {
 public:
  /// The ids must outlive it. Throws as Gradients and Windows do, and std::invalid_argument when
  /// parts is 0, a beta is not in [0, 1) or eps is not above 0.
  Trainer(Model model, const TrainingOptions& options, std::span<const int> ids);

  /// One step. Throws std::runtime_error, naming the first tensor, when a gradient is not finite;
  /// the weights are then as they were before the step.
  StepReport step();
  /// The same on a batch of the caller's, with the mean over its targets that are to be learned.
  /// Throws std::invalid_argument when there is none.
  StepReport step_on(const Batch& batch);

  /// Mean loss over a text, all of it or the first windows; windows follow one another, and each is
  /// read alone.
  double loss_of(std::span<const int> ids, std::size_t most_windows = std::size_t(-1));

  const Model& model() const { return model_; }
  const TrainingOptions& options() const { return options_; }
  std::size_t steps_done() const { return steps_done_; }

  /// What a checkpoint holds: the weights, the running means and squares, in one order of tensors.
  std::vector<ListedTensor> weights();
  std::vector<ListedTensor>& means() { return means_; }
  std::vector<ListedTensor>& squares() { return squares_; }
  void continue_from(std::size_t steps_done) { steps_done_ = steps_done; }

  /// Bytes: gradients and the optimizer's state, what the forward pass keeps, scratch.
  struct Memory {
    std::size_t weights, gradients, optimizer, kept, scratch;
  };
  Memory memory() const;

 private:
  void begin_step();
  StepReport end_step(double loss);
  double update(float rate, float gradient_scale);

  TrainingOptions options_;
  Model model_;
  Windows windows_;
  Batch batch_;
  Gradients passes_;
  ModelWeights gradients_, mean_, square_;
  std::vector<ListedTensor> gradient_list_, means_, squares_;
  std::vector<double> scratch_;  // of the optimizer
  std::size_t steps_done_ = 0;
};

}  // namespace t2t
