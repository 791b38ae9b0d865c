#include "09_language_model/accounts.hpp"

#include "05_kv_cache/kv_cache.hpp"
#include "shapes.hpp"

namespace t2t {

/// What one block costs, chapter 08's parts gathered as this chapter names them.
struct BlockCost {
  Parameters parameters = {};
  Flops flops = {};
};
static BlockCost block_cost(const Config& config, std::size_t T, std::size_t S) {
  BlockCost cost;
  for (const PartCost& part : block_costs(block_settings(config), T, S)) {
    if (part.name == "norm") {
      cost.parameters.norms += part.parameters;
    } else if (part.name == "feed-forward") {
      cost.parameters.feed_forward += part.parameters;
      cost.flops.feed_forward += part.flops;
    } else {
      cost.parameters.attention += part.parameters;
      (part.name == "attention" ? cost.flops.attention : cost.flops.projections) += part.flops;
    }
  }
  return cost;
}

Parameters count_parameters(const Config& config) {
  expect_config(config);
  const std::size_t L = config.L, table = config.V * config.C;
  const Parameters block = block_cost(config, 1, 1).parameters;
  const std::size_t final_norm = config.norm == Norm::layer ? 2 * config.C : config.C;
  return {.embedding = table,
          .positions = config.positions == Positions::learned ? config.T_max * config.C : 0,
          .attention = L * block.attention,
          .feed_forward = L * block.feed_forward,
          .norms = L * block.norms + final_norm,
          .head = config.tied ? 0 : table};
}

std::size_t total(const Parameters& parameters) {
  const auto& [embedding, positions, attention, feed_forward, norms, head] = parameters;
  return embedding + positions + attention + feed_forward + norms + head;
}

Flops count_flops(const Config& config, std::size_t T, std::size_t S, std::size_t scored) {
  expect_config(config);
  expect(scored <= T, "scored, the tokens with logits", "at most T", double(scored));
  const double L = double(config.L);
  const Flops block = block_cost(config, T, S).flops;
  return {.projections = L * block.projections,
          .attention = L * block.attention,
          .feed_forward = L * block.feed_forward,
          .head = 2 * double(scored) * double(config.V) * double(config.C)};
}

double total(const Flops& flops) {
  const auto& [projections, attention, feed_forward, head] = flops;
  return projections + attention + feed_forward + head;
}

InferenceMemory inference_memory(const Config& config, std::size_t S, double bytes_a_number) {
  const double parameters = double(total(count_parameters(config)));
  const double cached = double(kv_cache_bytes(config.L, config.G, S, config.D, 1));
  const double C = double(config.C), heads = double(config.H * config.D);
  const double groups = double(config.G * config.D);
  const double scratch = 3 * C + 2 * heads + 2 * groups + 2 * double(config.F) + double(config.V);
  return {bytes_a_number * parameters, bytes_a_number * cached, bytes_a_number * scratch};
}

TrainingMemory training_memory(const Config& config, std::size_t B, std::size_t T,
                               double bytes_a_number) {
  const double parameters = double(total(count_parameters(config)));
  const double tokens = double(B) * double(T), L = double(config.L), H = double(config.H);
  const double C = double(config.C), F = double(config.F), V = double(config.V);
  const double heads = H * double(config.D), groups = double(config.G * config.D);

  // A block's: what each norm read, both norms, q, k, v, the heads' answers, and of the network
  // gate, up and hidden (up and hidden without a gate). Then the final norm's two, and the logits.
  const double networks = is_gated(config.activation) ? 3 * F : 2 * F;
  const double block = 4 * C + 2 * heads + 2 * groups + networks;
  return {.weights = bytes_a_number * parameters,
          .gradients = bytes_a_number * parameters,
          .optimizer = (bytes_a_number < 4 ? 12.0 : 8.0) * parameters,
          .activations = bytes_a_number * tokens * (L * block + 2 * C + V),
          .attention_weights = bytes_a_number * tokens * L * H * double(T)};
}

}  // namespace t2t
