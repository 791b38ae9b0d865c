// The loss when no rank has all logits of a token: the vocabulary is divided, and so are the
// logits.
//
//   loss = ln Σ e^(logit − m) + m − logit of the target        m, the largest logit of all ranks
//
// The sum and the gradient of each logit need m and Σ, two numbers a token, and not the V logits.
// One rank has the target's logit, the others bring 0. So that all ranks get the same bits, each
// rank gathers the numbers of all ranks and adds them in the ranks' order. Shoeybi et al. 2019,
// "Megatron-LM", section 3.
#pragma once

#include <cstddef>
#include <span>

#include "19_ranks/counting/counts.hpp"
#include "20_split_models/tensor_parallel/shard_group.hpp"
#include "tensor.hpp"

namespace t2t {

/// As chapter 13's cross_entropy_rows, for logits [T, own tokens] of the tokens range_of(V,
/// ranks.size, ranks.rank): overwrites them by their gradients, and returns the sum of the losses
/// of the T tokens, in nats, the same on each rank. All ranks must call it. Throws
/// std::invalid_argument for other sizes and for targets outside [0, V) that are not not_learned,
/// and as messages.hpp says.
double split_cross_entropy_rows(const ShardGroup& ranks, std::size_t V, Matrix logits,
                                std::span<const int> targets,  // [T]
                                float scale);

/// What one rank sends for T tokens.
Sent split_cross_entropy_cost(std::size_t T, std::size_t ranks, std::size_t rank);

}  // namespace t2t
