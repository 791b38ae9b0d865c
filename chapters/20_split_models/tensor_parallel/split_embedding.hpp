// The embedding when the vocabulary is divided: each rank has the table's rows of its own tokens.
//
//   forward     a token's row on the rank that has it, zeros on the others; then the sum over ranks
//   backward    every rank has the whole gradient of x, and adds its own tokens' rows
//
// Learned positions belong to rank 0, and are zeros on the others.
#pragma once

#include <cstddef>

#include "13_training/backward/passes.hpp"
#include "19_ranks/collectives/range.hpp"
#include "20_split_models/tensor_parallel/shard_group.hpp"

namespace t2t {

class SplitEmbedding {
 public:
  /// For B sequences of T tokens of a model with V tokens in all.
  SplitEmbedding(const ShardGroup& ranks, const Config& whole, std::size_t B, std::size_t T);

  /// In place of Passes' functions of the same purposes, with a rank's own model. All ranks must
  /// call `embed`, which throws std::invalid_argument for ids outside [0, V), and as messages.hpp
  /// says.
  void embed(Passes& passes, const Model& own, const Batch& batch, const Dropout& dropout) const;
  void backward(Passes& passes, const Batch& batch, ModelWeights& gradients,
                const Dropout& dropout);

 private:
  ShardGroup ranks_;
  std::size_t B_, T_, V_;
  Range tokens_;  // of this rank
  bool learned_positions_;
  Tensor<2> own_rows_;  // [N, C], gradients of the own tokens, one after the other
};

}  // namespace t2t
