// What a block costs, part by part, computed from its settings: parameters, and floating-point
// operations (FLOPs) of its matrix products.
//
//   each element of a matrix is used in one multiplication and one addition per token: 2 FLOPs
//   each key that a query sees costs 2·D FLOPs per head for the score, and 2·D for its value
//
// Norms, RoPE, activations and sums are not counted. Chapter 09 adds up the blocks of a model.
#pragma once

#include <cstddef>

#include "08_block/block_settings.hpp"

namespace t2t {

struct PartCost {
  std::size_t parameters;
  double flops;  // of matrix products
};
struct BlockCosts {
  PartCost attention_norm;
  PartCost projections;  // q, k and v, with the norms of their heads
  PartCost attention;    // queries times keys, and softmax's weights times values
  PartCost output;       // the output projection, by w_o
  PartCost feed_forward_norm;
  // Gate (if there is one), up and down. With experts: the parameters of the router and of all
  // experts, and the FLOPs of the router and of the chosen ones; both with the shared expert's.
  PartCost feed_forward;
};
PartCost total(const BlockCosts& costs);

/// The cost of T tokens that are the last of S positions, under the settings' mask. Throws as
/// expect_settings does, and when T is 0 or above S.
BlockCosts block_costs(const BlockSettings& settings, std::size_t T, std::size_t S);

}  // namespace t2t
