// Which rank has which experts of a layer: neighbours in the router's order.
//
//   8 experts on 3 ranks    0 1 2 | 3 4 5 | 6 7        the first ranks have one more
//
// A mixture's experts have no order of their own: if the router's rows and the experts are
// renumbered alike, the model is the same. To deal out busy experts among the ranks is therefore to
// renumber them.
#pragma once

#include <cstddef>
#include <vector>

#include "19_ranks/collectives/range.hpp"
#include "tensor.hpp"

namespace t2t {

/// The experts of rank `rank` of `ranks`. Throws std::invalid_argument for more ranks than experts,
/// and for a rank that does not exist.
Range own_experts(std::size_t E, std::size_t ranks, std::size_t rank);

/// An order of the experts in which each rank's range has busy and idle ones: the busiest is dealt
/// to rank 0, the next to rank 1, and so on, like cards. Element i is the expert that becomes
/// number i; equal loads are dealt in the old order. Throws as own_experts does.
std::vector<std::size_t> dealt_out(ConstRow loads,  // [E]
                                   std::size_t ranks);

/// The work of the rank that has most, as a multiple of the ranks' mean: how much longer all ranks
/// wait than under an even load. Throws std::invalid_argument when all loads are 0, and as
/// own_experts does.
double fullest_over_mean(ConstRow loads,  // [E]
                         std::size_t ranks);

}  // namespace t2t
