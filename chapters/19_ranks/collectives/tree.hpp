// Collectives on a binomial tree: in round k, one of two ranks that are 2^k apart sends its whole
// vector to the other, so that ⌈log₂ p⌉ rounds reach p ranks. Fewer messages one after another than
// on a ring, and more bytes: for short vectors. (Thakur, Rabenseifner and Gropp 2005, "Optimization
// of Collective Communication Operations in MPICH", compares such algorithms.)
//
// All ranks of the group must call these functions, with equal lengths. They throw as messages.hpp
// says.
#pragma once

#include "19_ranks/start/communicator.hpp"
#include "tensor.hpp"

namespace t2t {

/// On rank 0 x becomes the sum over all ranks; elsewhere it then holds the sum of some ranks.
/// The order of the sum is that of fixed pairs, the same for each element:
///
///   ((x₀ + x₁) + (x₂ + x₃)) + ((x₄ + x₅) + (x₆ + x₇))        where there are 8 ranks
///
/// With fewer ranks, the terms that are missing are left out.
void tree_reduce(const Communicator& ranks, Row x);

/// x becomes rank 0's x.
void tree_broadcast(const Communicator& ranks, Row x);

/// x becomes the sum over all ranks, the same bits everywhere: 2·⌈log₂ p⌉ rounds.
void tree_all_reduce(const Communicator& ranks, Row x);

}  // namespace t2t
