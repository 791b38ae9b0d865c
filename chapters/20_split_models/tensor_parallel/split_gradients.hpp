// A forward and a backward pass of a model that is divided among ranks.
//
//   forward     x = Σ over ranks of the embedding     then in each sublayer: read x, and add the
//                                                     sum over ranks of what it made
//   backward    in each sublayer: the gradient of what it made is whole on each rank; the gradient
//               of what it read is summed over ranks
//
// Every rank reads the same x, and each of them gives x a part of its gradient: where the forward
// pass needs no message, the backward pass needs a sum, and the other way round. Megatron-LM calls
// the two places f and g (Shoeybi et al. 2019, section 3). Chapter 13's Passes have one slot
// for both, sum_terms.
//
// A rank's own model has V = its own tokens: its embedding, and its head if the two are not tied,
// are [own tokens, C].
#pragma once

#include <cstddef>
#include <vector>

#include "13_training/backward/passes.hpp"
#include "19_ranks/counting/counts.hpp"
#include "20_split_models/tensor_parallel/shards.hpp"
#include "20_split_models/tensor_parallel/split_embedding.hpp"

namespace t2t {

/// The Config and the weights of a rank's own model for training. Throws as config_of does, and
/// std::invalid_argument, naming the setting, for what has no gradients here: more ranks than key
/// heads, since the gradient of a repeated key head would lie on several ranks; norms of heads,
/// whose gains all heads share; and as expect_trained does.
Config trained_config_of(const Config& whole, Shard shard);
ModelWeights trained_shard_of(const ModelWeights& weights, const Config& whole, Shard shard);

/// Chapter 13's slots: each rank has a term of what a sublayer adds, and of the gradient of what it
/// read, and the logits of its own tokens, of V in all.
TrainingFunctions split_functions(const ShardGroup& ranks, std::size_t V);

class SplitGradients {
 public:
  /// For B sequences of T tokens. Throws as trained_config_of and chapter 13's Gradients do.
  SplitGradients(const ShardGroup& ranks, const Config& whole, std::size_t B, std::size_t T);

  /// Adds the gradients of scale · Σ loss to `gradients`, of the shapes of the own weights, and
  /// returns Σ loss over the targets that are to be learned, in nats, the same on each rank. All
  /// ranks must call it, with the same batch. Dropout acts on sums that are complete, as on one
  /// rank. Throws std::invalid_argument for a batch of other B or T, for ids outside [0, V), as
  /// split_cross_entropy_rows does, and as messages.hpp says.
  double add(const Model& own, const Batch& batch, float scale, ModelWeights& gradients,
             const Dropout& dropout = {});

 private:
  std::size_t B_, T_;
  Config own_;
  SplitEmbedding embedding_;
  Passes passes_;  // over the residual stream, which is the same on each rank, as its gradient
  std::vector<KeptBlock> kept_;  // [L]
};

/// What one rank sends in a call of add, whose logits are computed in one piece, as they are for up
/// to 2²² of them.
Sent split_gradients_cost(const Config& whole, std::size_t N, std::size_t ranks, std::size_t rank);

}  // namespace t2t
