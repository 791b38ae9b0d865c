// Small mixtures to be checked: their weights are hashed numbers, which need no file.
#pragma once

#include <cstdint>
#include <vector>

#include "14_mixture_of_experts/experts.hpp"
#include "support/hashed_numbers.hpp"

namespace t2t {

struct Made {
  Weight router;
  std::vector<FeedForwardWeights> experts;
  Activation activation = Activation::swiglu;
  RouterSettings settings{2};
  FeedForwardWeights shared = {};
  Weight shared_gate = {};

  Mixture view() const {
    return {router,
            experts,
            activation,
            settings,
            {},
            {shared.w_up.size() > 0 ? &shared : nullptr,
             shared_gate.size() > 0 ? &shared_gate : nullptr}};
  }
};

inline FeedForwardWeights network(std::uint32_t seed, std::size_t C, std::size_t F) {
  FeedForwardWeights weights;
  weights.w_gate = numbers(seed + 2, 1, 0, F, C);
  weights.w_up = numbers(seed + 3, 1, 0, F, C);
  weights.w_down = numbers(seed + 4, 1, 0, C, F);
  return weights;
}

/// E experts of width C and F inside, k of them for each token.
inline Made made(std::size_t E, std::size_t k, std::size_t C = 12, std::size_t F = 17) {
  Made some;
  some.router = numbers(1, 1, 0, E, C);
  for (std::size_t e = 0; e < E; ++e) some.experts.push_back(network(std::uint32_t(10 * e), C, F));
  some.settings.k = k;
  return some;
}

}  // namespace t2t
