// A rank's experts at work on rows that came from all ranks.
//
// To the rank, each row is a token that has chosen one expert with a weight of 1: chapter 14's
// expert by expert form, with k = 1, sorts the rows by expert and calls each network once. An
// expert's rows are in the order of their ranks and, of a rank, in that of its tokens. If the ranks
// have neighbouring tokens, that is the order on one rank, and each product is the same.
#pragma once

#include <span>

#include "14_mixture_of_experts/training/experts_backward.hpp"

namespace t2t {

/// The results of the rows, in their order: [N, C].
Tensor<2> run_own_experts(std::span<const FeedForwardWeights> own, Activation activation,
                          std::span<const std::size_t> experts,  // [N], below own.size()
                          const Tensor<2>& rows);                // [N, C]

/// Adds the gradients of the own experts, and returns the gradients of the rows: [N, C]. Throws as
/// chapter 14's experts_backward does.
Tensor<2> own_experts_backward(std::span<const FeedForwardWeights> own, Activation activation,
                               std::span<const std::size_t> experts,  // [N]
                               const Tensor<2>& rows,                 // [N, C]
                               const Tensor<2>& dresults,             // [N, C]
                               std::span<FeedForwardWeights> gradients);

}  // namespace t2t
