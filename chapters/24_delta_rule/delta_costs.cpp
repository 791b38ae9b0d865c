#include "24_delta_rule/delta_costs.hpp"

#include <fmt/format.h>

#include "05_kv_cache/kv_cache.hpp"
#include "shapes.hpp"

namespace t2t {

static std::size_t attention_layers(const HybridSizes& sizes, std::size_t every) {
  expect(every == 0 || sizes.layers % every == 0, "every, the layers to one that attends",
         fmt::format("0 or a divisor of {}", sizes.layers), every);
  return every == 0 ? 0 : sizes.layers / every;
}

std::size_t state_bytes(const HybridSizes& sizes, std::size_t every) {
  const std::size_t of_layer =
      sizes.H * sizes.D * sizes.Dv + (sizes.W - 1) * sizes.channels;  // floats
  return (sizes.layers - attention_layers(sizes, every)) * of_layer * sizeof(float);
}

std::size_t cache_bytes(const HybridSizes& sizes, std::size_t every, std::size_t S) {
  return kv_cache_bytes(attention_layers(sizes, every), sizes.G, S, sizes.attention_D, 2);
}

std::size_t step_operations(std::size_t D, std::size_t Dv) { return 7 * D * Dv; }
std::size_t chunk_operations(std::size_t D, std::size_t Dv, std::size_t c) {
  return 4 * c * D + 3 * c * Dv + 6 * D * Dv;
}

}  // namespace t2t
