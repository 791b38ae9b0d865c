// A layer's mixture of experts on many ranks: each rank has its own tokens, the whole router, and a
// range of the experts.
//
//   forward    home: route → rows to the experts' ranks → results back → y = Σ weight_i · result_i
//   backward   home: dweight_i = dy·result_i, and weight_i · dy to the experts' ranks
//              expert: gradients of its matrices, complete, since all its tokens came here
//              home: dx = Σ of what comes back + the router's
//
// The weights are applied at home only, and a token's results are added in the order of its
// choices, as on one rank. The router's gradient is that of the own tokens: the ranks' sum is the
// whole. Lepikhin et al. 2020, "GShard"; Fedus et al. 2021, "Switch Transformers".
#pragma once

#include "14_mixture_of_experts/training/experts_backward.hpp"
#include "20_split_models/expert_parallel/choice_exchange.hpp"

namespace t2t {

/// The choices of all tokens, each routed alone: they do not depend on the tokens beside it, and
/// thus not on the number of ranks. Throws as route does; the token is the number among the own
/// ones.
Routed route_each(ConstMatrix x,  // [T, C]
                  const Mixture& mixture);

/// What a layer keeps of its forward pass for its backward pass.
struct KeptExperts {
  Routed routed;
  ChoiceExchange exchange;
  Tensor<2> received;  // [received, C]  other ranks' rows, and own ones
  Tensor<2> results;   // [sent, C]      of the own choices
};

/// Writes y of the own tokens, for choices made already. The mixture has the own experts alone, and
/// a router for all. All ranks must call it; there may be no tokens. Throws std::invalid_argument
/// when shapes disagree, for another number of experts than own_experts says, and for a shared
/// network, which needs no messages; and as exchange_counts does.
KeptExperts parallel_experts_rows(const Communicator& ranks,
                                  ConstMatrix x,  // [T, C]
                                  const Mixture& mixture, Routed routed,
                                  Matrix y);  // [T, C]

/// Writes dx of the own tokens, and adds to the gradients of the own experts, from all ranks'
/// tokens, and of the router, from the own. Only these two are used. All ranks must call it. Throws
/// std::invalid_argument when shapes disagree and for networks without a gate, and as messages.hpp
/// says.
void parallel_experts_backward(const Communicator& ranks,
                               ConstMatrix x,  // [T, C]
                               const Mixture& mixture, const KeptExperts& kept,
                               ConstMatrix dy,  // [T, C]
                               Matrix dx,       // [T, C], to be written
                               const MixtureGradients& gradients);

}  // namespace t2t
