// A layer's mixture of experts and its tokens, small enough for every number of ranks.
#pragma once

#include <string>
#include <vector>

#include "14_mixture_of_experts/made.hpp"
#include "14_mixture_of_experts/training/experts_backward.hpp"
#include "19_ranks/collectives/range.hpp"
#include "19_ranks/on_ranks.hpp"
#include "20_split_models/expert_parallel/expert_ranges.hpp"

namespace t2t::parallel_experts_tests {

using Floats = std::vector<float>;
using Sizes = std::vector<std::size_t>;
constexpr std::size_t C = 12, F = 17, T = 29;

/// A mixture, and an expert that no token chooses, if there is a bias against it.
struct Layer {
  Made weights;
  Floats bias;

  Mixture whole() const {
    Mixture mixture = weights.view();
    mixture.bias = bias;
    return mixture;
  }
  Mixture of_rank(const Communicator& ranks) const {
    Mixture mixture = whole();
    const Range own = own_experts(mixture.E(), ranks.size, ranks.rank);
    mixture.experts = mixture.experts.subspan(own.begin, own.size());
    return mixture;
  }
};
inline Layer layer(std::size_t E, std::size_t k, bool one_is_idle = false) {
  Layer some = {made(E, k, C, F), {}};
  some.weights.settings.normalized = k > 1;  // a single weight would always be 1
  some.weights.router = numbers(1, 4, 0, E, C);
  if (!one_is_idle) return some;
  some.bias.assign(E, 0);
  some.bias[1] = -9;
  return some;
}

/// How the tokens are divided among the ranks.
enum class Tokens { even, none_on_rank_0, all_on_the_last };
inline Range own_tokens(Tokens how, std::size_t p, std::size_t r) {
  if (how == Tokens::even || p == 1) return range_of(T, p, r);
  if (how == Tokens::all_on_the_last) return {r + 1 < p ? T : 0, T};
  return r == 0 ? Range{0, 0} : range_of(T, p - 1, r - 1);
}

inline Tensor<2> all_tokens() { return numbers(8, 4, 0, T, C); }
inline Tensor<2> cut(const Tensor<2>& x, Range rows) {
  return copy_of(ConstMatrix(x).rows_from(rows.begin, rows.size()));
}
inline Floats floats_of(const Tensor<2>& x) { return {x.begin(), x.end()}; }

inline Tensor<2> zeros_like(const Weight& w) { return xt::zeros<float>({w.rows(), w.cols()}); }

/// Gradients of a mixture's weights, all 0.
struct ZeroGradients {
  Weight router, no_gate;
  std::vector<FeedForwardWeights> experts;
  FeedForwardWeights no_shared;

  explicit ZeroGradients(const Mixture& of) : router(zeros_like(of.router)) {
    for (const FeedForwardWeights& w : of.experts) {
      FeedForwardWeights& gradients = experts.emplace_back();
      gradients.w_gate = zeros_like(w.w_gate), gradients.w_up = zeros_like(w.w_up);
      gradients.w_down = zeros_like(w.w_down);
    }
  }
  MixtureGradients view() { return {router, experts, no_shared, no_gate}; }
};

}  // namespace t2t::parallel_experts_tests
