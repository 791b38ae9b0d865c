// A forward and a backward pass of chapter 13 over a ShardedModel: a block's weights are gathered
// just before each use, and its gradients are scattered just after its backward pass.
//
//   embedding → block 0 … block L − 1 → head → block L − 1 … block 0 → embedding
//   gather      gather     gather       gather  gather        gather
//                                       scatter scatter       scatter   scatter
//
// Each block is gathered twice, since its room belongs to the next block in between: FSDP's
// reshard_after_forward.
#pragma once

#include <vector>

#include "13_training/backward/passes.hpp"
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
  Passes passes_;
  std::vector<KeptBlock> kept_;  // [L]
};

}  // namespace t2t
