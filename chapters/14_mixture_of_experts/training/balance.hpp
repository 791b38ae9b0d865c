// What keeps a router from sending all tokens to a few experts: losses and rules for balance.
//
//   Switch's loss   E · Σ over e of f[e]·P[e]       f[e]: the share of the choices that e gets
//                                                   P[e]: the mean over tokens of p[t,e]
//   z-loss          mean over t of (ln Σ e^score)²   keeps the scores small
//   a bias          grows for an expert with too few choices and shrinks for one with too many
//   capacity        an expert accepts only so many choices, and later tokens go without it
//
// With every f and every P equal to 1/E, Switch's loss is 1 for any E. f is counted and has no
// gradient: the loss pulls p[t,e] down by f[e], most for the expert with the most tokens. Fedus et
// al. 2021; Zoph et al. 2022, "ST-MoE" (z-loss); Wang et al. 2024, "Auxiliary-Loss-Free Load
// Balancing Strategy for Mixture-of-Experts" (bias); Lepikhin et al. 2020, "GShard" (capacity).
#pragma once

#include <span>
#include <vector>

#include "14_mixture_of_experts/router.hpp"

namespace t2t {

/// Each expert's share of all choices: [E]. Throws std::invalid_argument when there are no choices,
/// and for one that is not below E.
Tensor<1> loads_of(std::span<const std::size_t> experts, std::size_t E);

/// Returns factor · Switch's loss of one layer, and adds its gradient to dp. Throws
/// std::invalid_argument when shapes disagree or there are no tokens.
double balance_loss(const Routed& routed, float factor,
                    Tensor<2>& dp);  // [T, E], added to

/// Returns factor · z-loss of one layer, and adds its gradient to dscores. It reads only the scores
/// of routed. Throws as balance_loss does.
double z_loss(const Routed& routed, float factor,
              Tensor<2>& dscores);  // [T, E], added to

/// One step of balancing without a loss: bias[e] += rate where the load is below 1/E, −= rate where
/// it is above. Throws std::invalid_argument when sizes disagree.
void adjust_bias(const Tensor<1>& loads,        // [E]
                 float rate, Tensor<1>& bias);  // [E]

/// Each expert accepts its first `capacity` choices, in the order of the tokens. The other choices'
/// weights become 0: their tokens get nothing from that expert, and the residual connection carries
/// them past. Returns how many were dropped. Throws std::invalid_argument when capacity is 0.
std::size_t limit_to(std::size_t capacity, Routed& routed);
/// ⌈slack · T·k / E⌉: an expert's choices under an even load, times some slack.
std::size_t capacity_of(std::size_t T, std::size_t k, std::size_t E, double slack);

/// The counter-example: each expert chooses the `capacity` tokens with its largest p. The load is
/// even by construction, but whether a token is chosen depends on the tokens after it. Returns the
/// experts of each token, by index. Throws std::invalid_argument unless capacity is from 1 to T.
/// Zhou et al. 2022, "Mixture-of-Experts with Expert Choice Routing".
std::vector<std::vector<std::size_t>> expert_choice(const Tensor<2>& p, std::size_t capacity);

}  // namespace t2t
