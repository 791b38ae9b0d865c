// LoRA, low-rank adaptation: a trained model learns something more, and only two thin matrices are
// trained for each of its chosen matrices. Hu et al. 2021, "LoRA: Low-Rank Adaptation of Large
// Language Models".
//
//   W = W₀ + s·B·A,  s = alpha / r          A [r, in] is random at first, B [out, r] is 0
//
//   dB = s·dW·Aᵀ          dA = s·Bᵀ·dW
//
// W₀ stays unchanged, so the model starts as the old one. The forward and backward passes are those
// of any model with the weights W: A and B get their gradients from dW by the chain rule. Other
// matrices get no gradient at all, and the optimizer keeps its two means only for A and B.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "10_pretrained/model/adapter.hpp"
#include "13_training/trainer/trainer.hpp"

namespace t2t {

struct LoraOptions {
  std::size_t rank = 8;
  float alpha = 16;
  std::vector<std::string> matrices = {"w_q", "w_v"};  // chapter 08's names
  std::size_t B = 8, T = 128;                          // of a batch
  Schedule schedule = {};
  AdamW adamw = {.decay = 0};
  double clip = 1;
  std::uint64_t seed = 1;  // of A
};

class LoraTrainer {
 public:
  /// `functions` are those of Gradients, for a caller with another loss. Throws
  /// std::invalid_argument when rank is 0 or larger than the smaller side of a matrix, for an
  /// unknown matrix name, for no names, for bad settings of a step, and as Gradients does.
  LoraTrainer(Model model, const LoraOptions& options, TrainingFunctions functions = {});

  /// One step on a batch, as Trainer::step_on, with the mean over its targets to be learned.
  StepReport step_on(const Batch& batch);
  /// One step against the gradient of scale · Σ loss. The report's loss is Σ loss.
  StepReport scaled_step_on(const Batch& batch, float scale);
  /// Mean loss over a batch's targets to be learned, in nats.
  double loss_of(const Batch& batch);

  const Model& model() const { return model_; }  // including the changes
  Adapter adapter() const;
  std::size_t parameters() const;  // of all A and B

 private:
  struct Factor {
    Tensor<2> x, dx;  // its elements and their gradient
  };
  struct Adapted {
    TensorInfo info;
    std::string name;  // in the model's file
    Tensor<2> base;    // W₀ [out, in]
    Factor a, b;       // [r, in], [out, r]
  };
  std::vector<Adapted> draw_factors();
  std::vector<ListedTensor> list_of(Tensor<2> Factor::*part);
  void put_weights();
  void pull_gradients();

  LoraOptions options_;
  Model model_;
  std::vector<Adapted> adapted_;
  Gradients passes_;
  ModelWeights gradients_;
  Optimizer optimizer_;
};

}  // namespace t2t
