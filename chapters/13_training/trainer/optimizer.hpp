// One step of the optimizer, for all tensors that learn: whole models in trainer.hpp, the thin
// matrices of lora.hpp.
//
//   gradients of the whole batch → their norm, and one factor that clips it → the step's rate
//   → AdamW, tensor by tensor
#pragma once

#include <vector>

#include "13_training/trainer/adamw.hpp"
#include "13_training/trainer/schedule.hpp"

namespace t2t {

/// What a step measured.
struct StepReport {
  std::size_t n;         // the step, from 1
  double loss;           // mean over its tokens, before the step, in nats
  double gradient_norm;  // before clipping
  float rate;
  double update_ratio;  // size of the matrices' step, as a share of their own
};

/// How far a step moves the weights.
struct StepOptions {
  Schedule schedule = {};
  AdamW adamw = {};
  double clip = 1;  // the gradients' norm at most; 0: any
};

class Optimizer {
 public:
  /// The tensors of both lists must outlive it, and have the same sizes in the same order. Throws
  /// std::invalid_argument when a beta is not in [0, 1) or eps is not above 0.
  Optimizer(const StepOptions& options, std::vector<ListedTensor> weights,
            std::vector<ListedTensor> gradients);

  /// Sets all gradients to 0.
  void begin_step();
  /// With the gradients of the whole batch: clips them, and moves the weights. Throws
  /// std::runtime_error, naming the first tensor, when a gradient is not finite or their norm is
  /// too large for a float; the weights are then as they were.
  StepReport end_step(double loss);

  std::size_t steps_done() const { return steps_done_; }
  void continue_from(std::size_t steps_done) { steps_done_ = steps_done; }

  const std::vector<ListedTensor>& weights() const { return weights_; }
  std::vector<ListedTensor>& means() { return means_; }
  std::vector<ListedTensor>& squares() { return squares_; }

 private:
  double update(float rate, float gradient_scale);

  StepOptions options_;
  std::vector<Tensor<1>> storage_;  // of means and squares
  std::vector<ListedTensor> weights_, gradients_, means_, squares_;
  std::vector<double> scratch_;
  std::size_t steps_done_ = 0;
};

}  // namespace t2t
