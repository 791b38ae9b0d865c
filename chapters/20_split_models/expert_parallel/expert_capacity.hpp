// The capacity of an expert when its tokens come from many ranks.
//
//   all_ranks    ⌈slack·T·k/E⌉ of all ranks' T tokens, in the order of ranks: what one rank with
//                all tokens would drop. The ranks must first tell each other their counts.
//   own_tokens   each rank limits its own choices by its own tokens. No message, but an expert that
//                is busy on one rank and idle on another drops choices that it has room for.
//
// Lepikhin et al. 2020, "GShard", and Fedus et al. 2021, "Switch Transformers", count by the own
// tokens: every rank then sends at most `capacity` rows to an expert, for which memory can be set
// aside before the router has run.
#pragma once

#include "14_mixture_of_experts/experts.hpp"
#include "19_ranks/start/communicator.hpp"

namespace t2t {

enum class CapacityOf { all_ranks, own_tokens };

struct ExpertCapacity {
  double slack = 0;  // as in capacity_of; 0: no capacity
  CapacityOf of = CapacityOf::all_ranks;
};

/// How many of each rank's sorted choices are each expert's, the same on every rank: [p, E]. All
/// ranks must call it, with as many experts. Throws as messages.hpp says.
Tensor<2> counts_of_ranks(const Communicator& ranks, const Assignment& sorted, std::size_t E);

/// Sets the weights of the own choices that are dropped to 0, so that they are never sent, and
/// returns how many these are. All ranks must call it. Throws as counts_of_ranks does.
std::size_t limit_choices(const Communicator& ranks, const ExpertCapacity& capacity,
                          Routed& routed);

}  // namespace t2t
