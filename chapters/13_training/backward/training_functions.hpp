// What can replace a block's feed-forward network in training, or change its attention or the
// results of its sublayers. Each such change brings its own backward pass.
//
// Experiments change scores, sums and masks (block_changes.hpp); a mixture of experts (chapter 14)
// brings its network.
#pragma once

#include <functional>
#include <span>

#include "08_block/fast/block_rows.hpp"
#include "13_training/attention/batch_attention.hpp"

namespace t2t {

/// The arguments of a network's backward pass.
struct NetworkCall {
  const Block& block;
  ConstMatrix x;            // [N, C]  the network's input
  ConstMatrix dy;           // [N, C]  the gradient of its output
  Matrix dx;                // [N, C]  the gradient of x, to be written
  BlockWeights& gradients;  // to be added to
};
/// A network in place of chapter 07's. It recomputes what its backward pass needs, or its forward
/// pass has saved it. The backward pass returns the network's own loss, such as one that balances
/// experts, whose gradient it has also added; 0 if there is none.
struct TrainedNetwork {
  FeedForward forward = {};
  std::function<double(const NetworkCall&)> backward = {};
};

/// Changes what a sublayer adds to the stream.
struct SumChange {
  BeforeSum forward = {};
  /// Changes the gradients of what was added and of the stream that it was added to. When it is
  /// called, both hold the gradient of the sum.
  std::function<void(const Block&, Part, Matrix dadded, Matrix dx)> backward = {};
};

struct TrainingFunctions {
  AttentionChange attention = {};
  TrainedNetwork network = {};
  SumChange sum = {};
  /// Tensor parallelism (chapter 20): each process computes a term of what a sublayer adds to the
  /// stream, and of the gradient of what a sublayer or the head reads. The function, given one,
  /// puts the sum over processes in its place.
  std::function<void(Matrix term)> sum_terms = {};
  /// In place of cross_entropy_rows, if a process has some tokens' logits only.
  std::function<double(Matrix logits, std::span<const int> targets, float scale)> loss = {};
};

}  // namespace t2t
