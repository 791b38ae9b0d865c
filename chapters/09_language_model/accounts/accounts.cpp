#include "09_language_model/accounts/accounts.hpp"

#include <span>

#include "05_kv_cache/kv_cache.hpp"
#include "08_block/costs/block_costs.hpp"
#include "shapes.hpp"

namespace t2t {

/// The sum of f(settings) over all blocks. When all are alike, f is called once.
template <class F>
static auto sum_over_blocks(const Config& config, F f) {
  auto sum = f(config.block) * decltype(f(config.block))(config.L);
  if (config.layers.empty()) return sum;
  sum = 0;
  for (const BlockSettings& settings : config.layers) sum += f(settings);
  return sum;
}

Parameters count_parameters(const Config& config) {
  expect_config(config);
  const std::size_t C = config.block.C, table = config.V * C;
  const auto of_blocks = [&](auto part) {
    return sum_over_blocks(config, [&](const BlockSettings& settings) -> std::size_t {
      return part(block_costs(settings, 1, 1));
    });
  };
  return {.embedding = table,
          .positions = config.learned_positions ? config.T_max * C : 0,
          .attention = of_blocks([](const BlockCosts& block) {
            return block.projections.parameters + block.output.parameters;
          }),
          .feed_forward =
              of_blocks([](const BlockCosts& block) { return block.feed_forward.parameters; }),
          .norms = of_blocks([](const BlockCosts& block) {
                     return block.attention_norm.parameters + block.feed_forward_norm.parameters;
                   }) +
                   (config.block.norm == Norm::layer ? 2 * C : C),
          .head = config.tied ? 0 : table};
}

std::size_t total(const Parameters& p) {
  return p.embedding + p.positions + p.attention + p.feed_forward + p.norms + p.head;
}

Flops count_flops(const Config& config, std::size_t T, std::size_t S, std::size_t scored) {
  expect_config(config);
  expect(scored <= T, "scored, the tokens with logits", "at most T", scored);
  const auto of_blocks = [&](auto part) {
    return sum_over_blocks(config, [&](const BlockSettings& settings) -> double {
      return part(block_costs(settings, T, S));
    });
  };
  return {
      .projections = of_blocks(
          [](const BlockCosts& block) { return block.projections.flops + block.output.flops; }),
      .attention = of_blocks([](const BlockCosts& block) { return block.attention.flops; }),
      .feed_forward = of_blocks([](const BlockCosts& block) { return block.feed_forward.flops; }),
      .head = 2 * double(scored) * double(config.V) * double(config.block.C)};
}

double total(const Flops& flops) {
  return flops.projections + flops.attention + flops.feed_forward + flops.head;
}

InferenceMemory inference_memory(const Config& config, std::size_t S, double bytes_per_element) {
  const double parameters = double(total(count_parameters(config)));
  const double cached = sum_over_blocks(config, [&](const BlockSettings& settings) {
    return double(kv_cache_bytes(1, settings.G, S, settings.D, 1));
  });
  const std::span<const BlockSettings> layers =  // one, when all are alike
      config.layers.empty() ? std::span(&config.block, 1) : std::span(config.layers);
  const std::size_t heads = widest(layers, [](const BlockSettings& s) { return s.H * s.D; });
  const std::size_t groups = widest(layers, [](const BlockSettings& s) { return s.G * s.D; });
  const std::size_t F = widest(layers, [](const BlockSettings& s) { return s.F; });
  const double scratch = 3 * double(config.block.C) + 2 * double(heads) + 2 * double(groups) +
                         2 * double(F) + double(config.V);
  return {bytes_per_element * parameters, bytes_per_element * cached, bytes_per_element * scratch};
}

TrainingMemory training_memory(const Config& config, std::size_t B, std::size_t T,
                               double bytes_per_element) {
  const double parameters = double(total(count_parameters(config)));
  const double tokens = double(B) * double(T), C = double(config.block.C), V = double(config.V);

  // A block keeps the inputs and outputs of its two norms, q, k and v, the heads' results, and the
  // network's gate, up and hidden (up and hidden without a gate). The final norm's input and output
  // and the logits are kept once.
  const double of_blocks = sum_over_blocks(config, [](const BlockSettings& s) {
    const double heads = double(s.H * s.D), groups = double(s.G * s.D), F = double(s.F);
    return 4 * double(s.C) + 2 * heads + 2 * groups + (is_gated(s.activation) ? 3 * F : 2 * F);
  });
  const double all_heads =
      sum_over_blocks(config, [](const BlockSettings& s) { return double(s.H); });
  return {.weights = bytes_per_element * parameters,
          .gradients = bytes_per_element * parameters,
          .optimizer = (bytes_per_element < 4 ? 12.0 : 8.0) * parameters,
          .activations = bytes_per_element * tokens * (of_blocks + 2 * C + V),
          .attention_weights = bytes_per_element * tokens * all_heads * double(T)};
}

}  // namespace t2t
