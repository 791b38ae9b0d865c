#include "12_quantization/cache/quantized_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "12_quantization/cache/quantized_attention.hpp"
#include "memory.hpp"
#include "shapes.hpp"

namespace t2t {

double quantized_cache_bytes(const Config& config, std::size_t S, std::size_t bits) {
  double numbers = 0;  // of a token's keys and values
  for (const BlockSettings& s : settings_of_all(config))
    numbers += 2 * double(s.G) * double(whole_blocks(s.D));
  return double(S) * numbers * quantized_number_bytes(bits);
}

ModelState quantized_state(const Config& config, std::size_t S, std::size_t bits,
                           StateOptions options) {
  expect_config(config);
  expect(bits == 4 || bits == 8, "bits", "4 or 8", double(bits));
  expect(S >= 1 && S <= config.T_max, "S, the positions to make room for",
         "1 to T_max = " + std::to_string(config.T_max), double(S));
  expect_memory(double(options.texts) * quantized_cache_bytes(config, S, bits),
                fmt::format("a state of S = {} positions", S), "make S or the model smaller");

  // The float caches of this state are thrown away: they need no more positions than its rows do.
  const std::size_t texts = options.texts;
  const AttentionKernel kernel = std::exchange(options.kernel, {});
  ModelState state(config, std::min(S, std::max<std::size_t>(options.chunk, 1)),
                   std::move(options));
  const std::vector<BlockSettings> layers = settings_of_all(config);
  state.S = S;
  state.attention = std::make_unique<CachedAttention>(layers, 1, 1, texts);
  const auto attention = std::make_shared<QuantizedAttention>(
      *state.attention, layers, S, std::min(state.scratch.T_max, S), bits, kernel);
  state.slots.attention = [attention](const Projected& in, Matrix heads, const Trace& trace) {
    (*attention)(in, heads, trace);
  };
  return state;
}

}  // namespace t2t
