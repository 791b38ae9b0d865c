// A language model of LSTM layers instead of blocks, and its training: the transformer's rival from
// before 2017, for an experiment.
//
//   ids → embedding → LSTM layers, one on the other → head, tied to the embedding → loss
#pragma once

#include <span>
#include <vector>

#include "04_causal_attention/recurrence/lstm.hpp"
#include "13_training/trainer/trainer.hpp"

namespace t2t {

struct LstmModel {
  Tensor<2> embedding;           // [V, C]
  std::vector<LstmCell> layers;  // [L]
};
/// Draws the embedding from N(0, 0.1²), since no norm lies between it and the gates; the forget
/// gates' biases are 1.
LstmModel draw_lstm_model(std::size_t V, std::size_t C, std::size_t L, Random& random);
std::size_t parameter_count(const LstmModel& model);
/// The rows are views: the model must outlive them.
std::vector<ListedTensor> tensors_of(LstmModel& model);

/// Returns Σ loss over a batch's targets, in nats, and adds the gradients of scale · Σ loss to
/// `gradients`, if there are any. Throws std::invalid_argument for ids outside [0, V), and when the
/// gradients have other shapes than the weights.
double lstm_loss(const LstmModel& model, const Batch& batch, float scale = 1,
                 LstmModel* gradients = nullptr);

/// As Trainer, whose options it reads: B, T, schedule, adamw, clip and seed.
class LstmTrainer {
 public:
  /// The ids must outlive it. Throws as Windows and Optimizer do.
  LstmTrainer(LstmModel model, const TrainingOptions& options, std::span<const int> ids);
  LstmTrainer(const LstmTrainer&) = delete;

  StepReport step();
  double loss_of(std::span<const int> ids);

 private:
  LstmModel model_, gradients_;
  Windows windows_;
  Batch batch_;
  Optimizer optimizer_;
};

}  // namespace t2t
