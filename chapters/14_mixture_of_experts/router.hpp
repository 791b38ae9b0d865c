// The router of a mixture of experts: for each token it chooses k of E networks, and their weights.
//
//   scores = x·routerᵀ                          [T, E]
//   p      = softmax(scores), or sigmoid(scores) of each score alone
//   chosen = the k experts of a token whose p + bias is largest
//   weight = p of the chosen, or, normalized, p divided by the sum over the chosen; if these p are
//            below the smallest normal float, all of them count as that
//
// Switch uses one expert and its p. Mixtral uses two and normalizes softmax, which equals the
// softmax of the two scores alone, since e^a / Σ divided by (e^a + e^b) / Σ is e^a / (e^a + e^b).
// OLMoE uses eight of 64 and does not normalize. DeepSeek-V3 normalizes sigmoids, and adds a bias
// that changes which experts are chosen but not their weights. Shazeer et al. 2017, "Outrageously
// Large Neural Networks"; Fedus et al. 2021, "Switch Transformers".
#pragma once

#include <cstddef>
#include <vector>

#include "tensor.hpp"
#include "weight.hpp"

namespace t2t {

enum class Scoring { softmax, sigmoid };

struct RouterSettings {
  std::size_t k;  // experts of a token
  Scoring scoring = Scoring::softmax;
  bool normalized = true;  // whether a token's weights add up to 1

  bool operator==(const RouterSettings&) const = default;
};

/// The routing of T tokens. A token's k experts are side by side, with the largest p + bias first.
struct Routed {
  Tensor<2> scores;                  // [T, E]
  Tensor<2> p;                       // [T, E]
  std::vector<std::size_t> experts;  // [T·k]
  Tensor<2> weights;                 // [T, k]
};

/// The formula. When p + bias are equal, the expert with the lower index is chosen. Throws
/// std::invalid_argument when shapes disagree, unless k is from 1 to E, and, naming the token, for
/// scores that are not finite.
Routed route(const Tensor<2>& x,                                   // [T, C]
             const Tensor<2>& router,                              // [E, C]
             const RouterSettings& settings, ConstRow bias = {});  // [E], or empty: no bias

/// Routes one token: its scores become p, and its experts and weights are written. The experts'
/// formula and row kernel call it; a later token changes nothing about an earlier one. Returns
/// false, and writes nothing, when a score is not finite.
bool route_row(Row scores,  // [E], becomes p
               const RouterSettings& settings,
               ConstRow bias,                   // [E] or empty
               std::span<std::size_t> experts,  // [k]
               Row weights);                    // [k]

/// Throws std::invalid_argument unless k is from 1 to E and the bias is empty or [E].
void expect_router(const RouterSettings& settings, std::size_t E, std::size_t bias);

/// The scores' gradient, from the weights' gradient, the only one that a router receives. The
/// choice itself has no gradient, and neither has a bias. A single normalized weight is always 1,
/// so with k = 1 normalized weights teach the router nothing. Throws std::invalid_argument when
/// shapes disagree.
Tensor<2> route_backward(const Routed& routed, const RouterSettings& settings,
                         const Tensor<2>& dweights);  // [T, k]

/// The scores' gradient, from the gradient of all p: what a loss on p itself adds. Throws
/// std::invalid_argument when shapes disagree.
Tensor<2> scores_backward(const Tensor<2>& p,  // [T, E]
                          Scoring scoring,
                          const Tensor<2>& dp);  // [T, E]

}  // namespace t2t
