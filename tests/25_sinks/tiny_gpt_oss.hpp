// A small gpt-oss model whose weights are hashed numbers.
#pragma once

#include <utility>
#include <vector>

#include "25_sinks/gpt_oss/gpt_oss.hpp"
#include "support/hashed_weights.hpp"

namespace t2t {

/// Gates and ups pass their limit in some places, for x as large as a norm makes it.
inline ClampedExperts hashed_experts(std::size_t E, std::size_t k, std::size_t C, std::size_t F,
                                     std::uint32_t seed) {
  ClampedExperts mixture;
  mixture.chosen = k;
  mixture.router = numbers(seed, 2, 0, E, C);
  mixture.b_router = numbers(seed + 1, 2, 0, E);
  for (std::size_t e = 0; e < E; ++e) {
    const std::uint32_t s = seed + 10 * std::uint32_t(e + 1);
    ClampedExpert expert;
    expert.w_gate = numbers(s, 4, 0, F, C), expert.w_up = numbers(s + 1, 4, 0, F, C);
    expert.w_down = numbers(s + 2, 0.5f, 0, C, F);
    expert.b_gate = numbers(s + 3, 4, 0, F), expert.b_up = numbers(s + 4, 4, 0, F);
    expert.b_down = numbers(s + 5, 1, 0, C);
    mixture.experts.push_back(std::move(expert));
  }
  return mixture;
}

/// Two layers, the first with a window of 5 keys; 4 experts, of which a token uses 2.
inline GptOss tiny_gpt_oss() {
  const Config config = gpt_oss_config({.C = 12,
                                        .H = 4,
                                        .G = 2,
                                        .D = 6,
                                        .L = 2,
                                        .V = 13,
                                        .T_max = 20,
                                        .window = 5,
                                        .yarn = {.factor = 4, .trained = 256}});
  ModelWeights weights = room_for(config);
  for_each_tensor(weights, config, [](const TensorInfo& info, auto& tensor) {
    const auto base = std::uint32_t(info.layer ? 100 * (*info.layer + 1) : 0);
    if (info.size() > 0) fill_numbers(info, base, tensor);
  });
  std::vector<GptOssLayer> layers;
  for (std::uint32_t l = 0; l < 2; ++l)
    layers.push_back({numbers(500 + l, 4, 0, 4), numbers(510 + l, 1, 0, 12),
                      hashed_experts(4, 2, 12, 7, 600 + 100 * l)});
  return {Model(config, std::move(weights)), std::move(layers)};
}

}  // namespace t2t
