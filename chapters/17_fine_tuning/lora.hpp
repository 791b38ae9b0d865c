// LoRA, low-rank adaptation: a trained model learns something more, and only two thin matrices for
// each chosen matrix of it learn. Hu et al. 2021, "LoRA: Low-Rank Adaptation of Large Language
// Models".
//
//   W = W₀ + s·B·A,  s = alpha / r          A [r, in] drawn at random, B [out, r] begins at 0
//
//   dB = s·dW·Aᵀ          dA = s·Bᵀ·dW
//
// W₀ stays as it is, so at the start the model is the old one. The forward and the backward pass
// are those of any model with the weights W: A and B get their gradients from dW by the chain rule.
// Matrices that are not adapted get no gradient at all, and the optimizer keeps its two means for A
// and B alone.
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
  /// Throws std::invalid_argument when rank is 0 or larger than the smaller side of a matrix, for a
  /// name that no matrix of a block has, for none, for a bad step's settings and as Gradients does.
  LoraTrainer(Model model, const LoraOptions& options);

  /// One step on a batch, as Trainer::step_on: the mean over its targets that are to be learned.
  StepReport step_on(const Batch& batch);
  /// Mean loss over a batch's targets that are to be learned, in nats.
  double loss_of(const Batch& batch);

  const Model& model() const { return model_; }  // with the changes in it
  Adapter adapter() const;
  std::size_t parameters() const;  // numbers of all A and B

 private:
  struct Factor {
    Tensor<2> x, dx;  // its numbers and their gradient
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
