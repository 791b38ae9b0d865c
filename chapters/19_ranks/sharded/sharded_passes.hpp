// A forward and a backward pass of chapter 13 over a ShardedModel: a block's weights are gathered
// just before each use, and its gradients are scattered just after its backward pass.
//
//   embedding → block 0 … block L − 1 → head → block L − 1 … block 0 → embedding
//   gather      gather     gather       gather  gather        gather
//                                       scatter scatter       scatter   scatter
//
// Each block is gathered twice, since its room belongs to the next block in between: FSDP's
// reshard_after_forward. Chapter 13's Gradients wants a whole Model and whole gradients; the parts
// that this file calls are the same.
#pragma once

#include <vector>

#include "13_training/backward/model_backward.hpp"
#include "19_ranks/sharded/sharded_model.hpp"

namespace t2t {

class ShardedPasses {
 public:
  /// For sequences of chapter 13's kind. Throws as its Gradients does for a model that has no
  /// backward pass there.
  ShardedPasses(const Config& config, std::size_t B, std::size_t T);

  /// Adds the gradients of scale · Σ loss to the sums in `model`, and returns Σ loss over the
  /// batch. A rank that has no part in this round calls it with no batch (a null pointer), and only
  /// takes part in the collectives. All ranks must call it after begin_round.
  double add(ShardedModel& model, const Batch* batch, float scale, const Dropout& dropout);

 private:
  void embed(const ShardedModel& model, const Batch& batch, const Dropout& dropout);
  void forward(const Block& block, const Dropout& dropout);
  double head(ShardedModel& model, const Batch& batch, float scale);
  void backward(const Block& block, ModelWeights& gradients, const Dropout& dropout);
  void embedding_backward(ShardedModel& model, const Batch& batch, const Dropout& dropout);

  std::size_t B_, T_;
  Tensor<2> x_;       // [N, C], the residual stream
  Tensor<2> dx_;      // [N, C], its gradient
  Tensor<2> logits_;  // [N, V]
  std::vector<double> losses_;
  std::vector<Run> runs_;  // [B], of T tokens each
  BatchAttention attention_;
  std::vector<KeptBlock> kept_;  // [L]
  BlockScratch forward_scratch_;
  BackwardScratch backward_scratch_;
  std::vector<RopeTable> backward_tables_;  // [L]
};

}  // namespace t2t
