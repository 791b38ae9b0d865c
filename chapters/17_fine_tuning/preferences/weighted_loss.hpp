// Cross-entropy with a weight for each token: the one loss whose gradient serves supervised
// fine-tuning, DPO and GRPO. With p = softmax(logits[t]) and the token that follows, target[t]:
//
//   loss = Σ_t weight[t]·(−ln p[target[t]])
//   dlogits[t,v] = weight[t]·(p[v] − 1 where v is the target)
//
// A step goes against the gradient, so a positive weight makes the target likelier and a negative
// one makes it less likely. What the methods differ in is where the weights come from: dpo.hpp, and
// rewards/grpo.hpp. weighted_passes.hpp runs whole models with it.
#pragma once

#include <span>

#include "13_training/backward/cross_entropy.hpp"
#include "tensor.hpp"

namespace t2t {

/// Overwrites logits by their gradients and losses by −ln p of each target, and returns the
/// weighted sum, in nats: the same for any number of threads. Allocates nothing. Rows whose target
/// is not_learned have a loss and gradients of 0, and their weights are not read. Throws
/// std::invalid_argument, before anything is written, when sizes differ, for another target outside
/// [0, V), and for a weight that is not finite.
double weighted_loss_rows(Matrix logits,                 // [T, V], become dlogits
                          std::span<const int> targets,  // [T]
                          ConstRow weights,              // [T], of either sign
                          std::span<double> losses);     // [T], written

}  // namespace t2t
