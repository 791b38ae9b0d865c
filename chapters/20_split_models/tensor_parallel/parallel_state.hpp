// A pass through a model that is divided among ranks. Each rank runs chapter 09's forward with its
// own part of the model; three functions between the products exchange what the ranks lack:
//
//   embedding            all-reduce of [T, C]: one rank has a token's row, the others have zeros
//   after w_o, w_down    all-reduce of [T, C]: each rank has a term of the sum over heads or hidden
//                        channels, which is added to the stream only when the sum is complete
//   logits               all-gather of [V]: each rank has its own tokens' logits
//
// They are rings (chapter 19) unless another all-reduce is given, which give each rank the same
// bits. After every sum, each rank has the whole stream, so that all ranks compute the same norms
// and choose the same token. Shoeybi et al. 2019, "Megatron-LM".
#pragma once

#include <cstddef>

#include "09_language_model/fast/state_options.hpp"
#include "19_ranks/counting/counts.hpp"
#include "19_ranks/link/link.hpp"
#include "20_split_models/tensor_parallel/shard_group.hpp"

namespace t2t {

/// x becomes the sum of all ranks' x, which has no gaps between its rows. All ranks must call it.
/// Throws as messages.hpp says, and std::invalid_argument for gaps.
void sum_over_ranks(const ShardGroup& ranks, Matrix x);

/// The options of a rank's ModelState, with these three functions added. All ranks must make equal
/// calls of forward, which then throws also as messages.hpp says.
StateOptions parallel_options(const ShardGroup& ranks, StateOptions options = {});

/// What one rank sends in a pass of at most a chunk of T tokens, `scored` of which get logits.
struct PassCost {
  Sent embedding, attention, feed_forward, logits;
  Sent together() const { return embedding + attention + feed_forward + logits; }
};
PassCost pass_cost(const Config& whole, std::size_t T, std::size_t scored, std::size_t ranks,
                   std::size_t rank);

/// Seconds of a token's messages, one after another: what a pass takes beside computing.
double pass_seconds(const Config& whole, const Link& link, std::size_t ranks);

}  // namespace t2t
