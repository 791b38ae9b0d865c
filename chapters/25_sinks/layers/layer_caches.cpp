#include "25_sinks/layers/layer_caches.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "25_sinks/layers/shared_caches.hpp"
#include "shapes.hpp"

namespace t2t {

std::vector<bool> rope_but_every(std::size_t step, std::size_t L) {
  expect(step >= 1, "step, from one layer without RoPE to the next", "at least 1", step);
  std::vector<bool> uses_rope(L);
  for (std::size_t l = 0; l < L; ++l) uses_rope[l] = (l + 1) % step != 0;
  return uses_rope;
}

Config with_rope_in(Config config, const std::vector<bool>& uses_rope) {
  expect(uses_rope.size() == config.L, "uses_rope, a choice for each layer",
         fmt::format("L = {}", config.L), uses_rope.size());
  config.layers = settings_of_all(config);
  for (std::size_t l = 0; l < config.L; ++l) config.layers[l].uses_rope = uses_rope[l];
  expect_config(config);
  return config;
}

std::vector<std::size_t> last_of_kind(std::span<const BlockSettings> layers, std::size_t readers) {
  expect(readers < layers.size(), "readers, the layers without a cache",
         fmt::format("fewer than L = {}", layers.size()), readers);
  const std::size_t first = layers.size() - readers;
  std::vector<std::size_t> owners(layers.size());
  for (std::size_t l = 0; l < layers.size(); ++l) {
    std::size_t owner = std::min(l, first - 1);
    while (l >= first && layers[owner].window != layers[l].window) {
      if (owner == 0)
        throw std::invalid_argument(
            fmt::format("layer {}: wanted an earlier layer with window = {} and a cache, got none",
                        l, layers[l].window));
      --owner;
    }
    owners[l] = l < first ? l : owner;
  }
  return owners;
}

double layer_cache_bytes(std::span<const BlockSettings> layers, std::span<const std::size_t> owners,
                         std::size_t S, double element_bytes) {
  expect_owners(layers, owners);
  double sum = 0;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    if (owners[l] != l) continue;
    const BlockSettings& layer = layers[l];
    const std::size_t kept = layer.window > 0 ? std::min(S, layer.window) : S;
    sum += 2 * double(layer.G * layer.D) * double(kept) * element_bytes;
  }
  return sum;
}

std::vector<BlockSettings> alternating_layers(std::size_t L, std::size_t G, std::size_t D,
                                              std::size_t period, std::size_t window) {
  std::vector<BlockSettings> layers(L, BlockSettings{.C = G * D, .H = G, .G = G, .D = D, .F = 0});
  for (std::size_t l = 0; l < L; ++l)
    if ((l + 1) % period != 0) layers[l].window = window;
  return layers;
}

}  // namespace t2t
