// What a block costs: numbers to keep, and multiplications and additions to do, part by part, from
// its settings alone.
//
//   a number of a matrix is multiplied and added once for each token: 2 FLOPs
//   a query meets the keys that it sees: 2·D FLOPs each a head, and as many for their values
//
// Norms, RoPE, activations and sums are left out of the FLOPs. Chapter 09 adds blocks up.
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
  PartCost attention;    // queries with keys, weights with values
  PartCost output;       // o
  PartCost feed_forward_norm;
  PartCost feed_forward;  // gate (if there is one), up and down
};
PartCost total(const BlockCosts& costs);

/// For T tokens, the last of S positions; each query counts the keys that it sees. Throws as
/// expect_settings does, or when T is 0 or above S.
BlockCosts block_costs(const BlockSettings& settings, std::size_t T, std::size_t S);

}  // namespace t2t
