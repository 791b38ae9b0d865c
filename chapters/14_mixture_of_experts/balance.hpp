// What keeps a router from sending all tokens to a few experts: losses and rules that balance.
//
//   Switch's loss   E · Σ over e of f[e]·P[e]       f[e]: the share of the choices that e gets
//                                                   P[e]: the mean over tokens of p[t,e]
//   z-loss          mean over t of (ln Σ e^score)²   keeps the scores small
//   a bias          grows for an expert with too few choices and shrinks for one with too many
//   capacity        an expert takes so many choices at most, and later tokens go without
//
// With every f and every P 1/E, Switch's loss is 1, whatever E is. f comes from counting and has no
// gradient: the loss pulls p[t,e] down by f[e], most where an expert has most tokens. Fedus et al.
// 2021; Zoph et al. 2022, "ST-MoE" (z-loss); Wang et al. 2024, "Auxiliary-Loss-Free Load Balancing
// Strategy for Mixture-of-Experts" (bias); Lepikhin et al. 2020, "GShard" (capacity).
#pragma once

#include <span>
#include <vector>

#include "14_mixture_of_experts/router.hpp"

namespace t2t {

/// The share of all choices that each expert gets: [E]. Throws std::invalid_argument when there are
/// no choices, and for one that is not below E.
Tensor<1> loads_of(std::span<const std::size_t> experts, std::size_t E);

/// Returns factor · Switch's loss of one layer, and adds its gradient to dp. Throws
/// std::invalid_argument when shapes disagree or there are no tokens.
double balance_loss(const Routed& routed, float factor,
                    Tensor<2>& dp);  // [T, E], added to

/// Returns factor · z-loss of one layer, and adds its gradient to dscores. Of routed it reads the
/// scores alone. Throws as balance_loss.
double z_loss(const Routed& routed, float factor,
              Tensor<2>& dscores);  // [T, E], added to

/// One step of balancing without a loss: bias[e] += rate where the load is below 1/E, −= rate where
/// it is above. Throws std::invalid_argument when sizes disagree.
void adjust_bias(const Tensor<1>& loads,        // [E]
                 float rate, Tensor<1>& bias);  // [E]

/// Each expert takes its first `capacity` choices, in the order of the tokens. The weights of all
/// others become 0: their token gets nothing from that expert, and the residual carries it past.
/// Returns how many were dropped. Throws std::invalid_argument when capacity is 0.
std::size_t limit_to(std::size_t capacity, Routed& routed);
/// ⌈slack · T·k / E⌉: what an expert would get if the load were even, times some slack.
std::size_t capacity_of(std::size_t T, std::size_t k, std::size_t E, double slack);

/// The counter-example: each expert chooses the `capacity` tokens with its largest p. The load is
/// even by construction, but whether a token is chosen depends on the tokens after it. Returns the
/// experts of each token, by index. Throws std::invalid_argument unless capacity is from 1 to T.
/// Zhou et al. 2022, "Mixture-of-Experts with Expert Choice Routing".
std::vector<std::vector<std::size_t>> expert_choice(const Tensor<2>& p, std::size_t capacity);

}  // namespace t2t
