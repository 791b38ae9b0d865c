// What can replace the network of a block in training, or change its attention or what a part adds.
// Each such change brings its own backward pass.
//
// Experiments change scores, sums and masks (block_changes.hpp); a mixture of experts (chapter 14)
// brings its network.
#pragma once

#include <functional>

#include "08_block/fast/block_rows.hpp"
#include "13_training/attention/batch_attention.hpp"

namespace t2t {

/// What the backward pass of a network is called with.
struct NetworkCall {
  const Block& block;
  ConstMatrix x;            // [N, C]  what the network read
  ConstMatrix dy;           // [N, C]  the gradient of what it wrote
  Matrix dx;                // [N, C]  the gradient of x, to be written
  BlockWeights& gradients;  // to be added to
};
/// A network in chapter 07's place. What its backward pass needs, it computes again, or its forward
/// pass has kept it. The backward pass returns a loss of the network's own, whose gradient it has
/// added too, such as one that balances experts; 0 if there is none.
struct TrainedNetwork {
  Network forward = {};
  std::function<double(const NetworkCall&)> backward = {};
};

/// Changes what a part adds to the stream.
struct SumChange {
  BeforeSum forward = {};
  /// Changes the gradients of what was added and of the stream that it was added to. When it is
  /// called, both hold the gradient of the sum.
  std::function<void(const Block&, Part, Matrix dadded, Matrix dx)> backward = {};
};

struct TrainingSlots {
  AttentionChange attention = {};
  TrainedNetwork network = {};
  SumChange sum = {};
};

}  // namespace t2t
