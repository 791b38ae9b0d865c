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
  expect(bits == 4 || bits == 8, "bits", "4 or 8", bits);
  expect_state_options(config, S, options);
  expect_memory(double(options.sequences) * quantized_cache_bytes(config, S, bits),
                fmt::format("a state of S = {} positions", S), "make S or the model smaller");
  const auto attention =
      std::make_shared<QuantizedAttention>(settings_of_all(config), S, std::min(options.chunk, S),
                                           options.sequences, bits, options.kernel);
  options.memory = {[attention](const Projected& in, Matrix heads, const Trace& trace) {
    (*attention)(in, heads, trace);
  }};
  return ModelState(config, S, std::move(options));
}

}  // namespace t2t
