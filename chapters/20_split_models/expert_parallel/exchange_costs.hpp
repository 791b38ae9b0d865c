// What the exchange of choices sends, by formula: counts.hpp counts what it really sends.
#pragma once

#include <cstddef>

#include "19_ranks/counting/counts.hpp"
#include "tensor.hpp"

namespace t2t {

/// What rank `rank` of `ranks` sends to tell the others how many rows their experts get from it.
Sent counts_cost(std::size_t E, std::size_t ranks, std::size_t rank);
/// What a rank sends of rows with C elements, there and back: forward, and once more backward.
/// `counts` are each rank's choices of each expert that were not dropped.
Sent rows_cost(const Tensor<2>& counts,  // [p, E]
               std::size_t C, std::size_t rank);

}  // namespace t2t
