// Training with two optimizers: Muon for the matrices inside blocks, chapter 13's AdamW for the
// rest.
//
//   gradients of the whole batch, in parts → AdamW moves embedding, head, gains, biases, routers
//                                          → Muon moves the matrices of blocks, one by one
//
// The parts of a batch are added up first: NS(g₁ + g₂) is not NS(g₁) + NS(g₂). Clipping concerns
// AdamW's tensors alone, by the norm of their own gradients: NS makes a step of one size anyway.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "13_training/trainer/trainer.hpp"
#include "18_experiments/muon/muon.hpp"

namespace t2t {

/// How the matrices inside blocks are moved.
struct MuonOptions {
  Muon muon = {};
  Schedule schedule = {};  // of the matrices' rate
};

class MuonTrainer {
 public:
  /// The training's schedule, AdamW and clip are those of the other tensors. The ids must outlive
  /// it. Throws std::invalid_argument when parts is 0, and as Gradients, Windows and Optimizer do.
  MuonTrainer(Model model, const TrainingOptions& training, const MuonOptions& matrices,
              std::span<const int> ids);

  /// One step, with the mean loss before it, the norm of all gradients and the matrices' rate.
  /// Throws std::runtime_error, naming the first tensor, when a gradient is not finite or their
  /// norm is too large for a float; all weights are then as they were.
  StepReport step();
  /// As Trainer::loss_of: mean loss over a text, in nats per token.
  double loss_of(std::span<const int> ids);

  const Model& model() const { return model_; }
  std::size_t steps_done() const { return optimizer_.steps_done(); }
  /// The full names of the tensors that Muon moves, and of those that AdamW moves.
  std::vector<std::string> names_of_muon() const;
  std::vector<std::string> names_of_adamw() const;
  /// Floats that both optimizers keep from step to step: one for a weight of Muon's, two for a
  /// weight of AdamW's.
  std::size_t state_floats() const;

 private:
  struct MovedMatrix {
    TensorInfo info;
    Row w, g;            // [out·in]
    Tensor<2> momentum;  // [out, in]
  };
  std::vector<ListedTensor> weights();
  double add_gradients();
  void expect_finite(double norm, double loss) const;

  TrainingOptions options_;
  MuonOptions matrices_options_;
  Model model_;
  Windows windows_;
  Batch batch_;
  Gradients passes_;
  ModelWeights gradients_;
  std::vector<MovedMatrix> matrices_;
  Optimizer optimizer_;  // of the rest
};

}  // namespace t2t
