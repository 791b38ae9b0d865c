// A mixture of experts instead of a block's feed-forward network: E networks of chapter 07, of
// which the router chooses k for each token.
//
//   y[t] = Σ over the k chosen i of weight[t,i] · expert_i(x[t])  (+ shared(x[t]), if there is one)
//
// The formula computes it token by token, as the papers write it. The row kernel computes it expert
// by expert, so that an expert's weights are read once for all of its tokens:
//
//   route → sort the choices by expert → gather the rows of x → one network call for each expert
//         → each token adds up its k results
//
// Shazeer et al. 2017; Jiang et al. 2024, "Mixtral of Experts".
#pragma once

#include <span>
#include <vector>

#include "07_swiglu/fast/feed_forward_rows.hpp"
#include "14_mixture_of_experts/router.hpp"
#include "14_mixture_of_experts/shared_network.hpp"

namespace t2t {

/// A mixture's weights and settings. Owns nothing.
struct Mixture {
  const Weight& router;                         // [E, C], floats
  std::span<const FeedForwardWeights> experts;  // [E], all of one F
  Activation activation;
  RouterSettings settings;
  ConstRow bias = {};         // [E], of the choice alone; or empty
  SharedNetwork shared = {};  // beside the experts

  std::size_t E() const { return experts.size(); }
};

/// The formula. Returns y, [T, C]. Throws std::invalid_argument as route, feed_forward and
/// shared_network do, when there are no experts, and when the router is packed or does not have one
/// row per expert.
Tensor<2> mixture_of_experts(const Tensor<2>& x,  // [T, C]
                             const Mixture& mixture);

/// Which rows go to which expert: the T·k choices in the order of their experts, and for one expert
/// in the order of the tokens.
struct Assignment {
  std::vector<std::size_t> begin;  // [E + 1]: expert e has the rows begin[e] … begin[e + 1] − 1
  std::vector<std::size_t> choices;  // [T·k]: row r is choice choices[r], that of token choice / k
  std::vector<std::size_t> rows;     // [T·k]: the row of each choice

  std::size_t count(std::size_t e) const { return begin[e + 1] - begin[e]; }
};
/// A stable counting sort. Allocates nothing if the assignment has held as many choices before.
/// Checks nothing: experts must be below E.
void assign(std::span<const std::size_t> experts,  // [T·k]
            std::size_t E, Assignment& assignment);

/// The row kernel's memory, used by all layers.
struct ExpertsScratch {
  Tensor<2> p;                       // [max_rows, E]    scores, then p
  std::vector<std::size_t> experts;  // [max_rows·k]
  Tensor<2> weights;                 // [max_rows, k]
  Assignment assignment;
  Tensor<2> gathered;               // [max_rows·k, C]  the rows of x, by expert
  Tensor<2> results;                // [max_rows·k, C]
  Tensor<2> shared, gates;          // [max_rows, C] and [max_rows, 1], of the shared network
  FeedForwardScratch feed_forward;  // of max_rows tokens, since each goes to an expert once at most

  /// For calls of up to max_rows tokens with exactly these C, E and k, and with networks of hidden
  /// width up to F, including the shared one. Throws std::invalid_argument when a size is 0 and
  /// unless k is from 1 to E.
  ExpertsScratch(std::size_t max_rows, std::size_t C, std::size_t F, std::size_t E, std::size_t k,
                 Activation activation);
};

/// The row kernel's second half, for choices made already, such as with a capacity: gathers the
/// rows, runs the experts and the shared network, and adds up their results. Throws
/// std::invalid_argument when the scratch is too small or made for another C, E or k. Checks
/// nothing else: experts must be below E, and y [T, C].
void run_choices(ConstMatrix x,                         // [T, C]
                 const Mixture& mixture,                //
                 std::span<const std::size_t> experts,  // [T·k]
                 ConstMatrix weights,                   // [T, k]
                 ExpertsScratch& scratch,
                 Matrix y);  // [T, C]

/// The row kernel. Allocates nothing. y may be x itself. Throws as mixture_of_experts does, and
/// when y is not [T, C] or the scratch is too small or made for another C, E or k; y is unchanged
/// then.
void experts_rows(ConstMatrix x,  // [T, C]
                  const Mixture& mixture, ExpertsScratch& scratch,
                  Matrix y);  // [T, C]

}  // namespace t2t
