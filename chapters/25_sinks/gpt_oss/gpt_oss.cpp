#include "25_sinks/gpt_oss/gpt_oss.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <numbers>
#include <stdexcept>
#include <utility>

#include "25_sinks/fast/sink_rows.hpp"
#include "25_sinks/layers/shared_caches.hpp"
#include "memory.hpp"
#include "shapes.hpp"

namespace t2t {

/// E, F and k.
static std::array<std::size_t, 3> sizes_of(const ClampedExperts& mixture) {
  return {mixture.experts.size(), mixture.experts[0].w_up.rows(), mixture.chosen};
}

void expect_gpt_oss(const GptOss& gpt_oss) {
  const Config& config = gpt_oss.model.config();
  expect(gpt_oss.layers.size() == config.L, "layers", fmt::format("L = {}", config.L),
         gpt_oss.layers.size());
  for (std::size_t l = 0; l < config.L; ++l) {
    const GptOssLayer& layer = gpt_oss.layers[l];
    expect_shape(fmt::format("layer {}: sinks", l), layer.sinks, {config.block.H});
    expect_shape(fmt::format("layer {}: b_o", l), layer.b_o, {config.block.C});
    try {
      expect_clamped_experts(layer.experts, config.block.C);
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument(fmt::format("layer {}: {}", l, error.what()));
    }
    if (sizes_of(layer.experts) != sizes_of(gpt_oss.layers[0].experts))
      throw std::invalid_argument(fmt::format("layer {}: wanted the E, F and k of layer 0", l));
  }
}

Frequencies unrounded_yarn(std::size_t D, double theta, const YarnScaling& scaling) {
  (void)yarn_scaling(D, theta, scaling);  // refuses what is out of range
  const auto& [factor, fast, slow, trained] = scaling;
  const auto pair_of = [&](double turns) {
    return double(D) * std::log(double(trained) / (2 * std::numbers::pi * turns)) /
           (2 * std::log(theta));
  };
  const double first = std::max(pair_of(fast), 0.0);
  const double last = std::max(std::min(pair_of(slow), double(D) - 1), first + 0.001);

  Frequencies frequencies = rope_frequencies(D, theta);  // [D/2]
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    const double slowed = std::clamp((double(i) - first) / (last - first), 0.0, 1.0);
    frequencies[i] *= slowed / factor + (1 - slowed);
  }
  return frequencies;
}

Config gpt_oss_config(const GptOssSizes& sizes) {
  expect(sizes.period >= 1, "period, from one layer without a window to the next", "at least 1",
         sizes.period);
  BlockSettings block{.C = sizes.C, .H = sizes.H, .G = sizes.G, .D = sizes.D, .F = 0};
  block.biases = Biases::qkv;
  block.pairing = Pairing::halves;
  block.theta = float(sizes.theta);
  block.eps = sizes.eps;
  if (sizes.yarn.factor > 1) {
    const float m = yarn_magnitude(sizes.yarn.factor);
    block.frequencies = unrounded_yarn(sizes.D, sizes.theta, sizes.yarn);
    block.score_scale = m * m / std::sqrt(float(sizes.D));
  }
  Config config{.block = block, .L = sizes.L, .V = sizes.V, .T_max = sizes.T_max};
  for (std::size_t l = 0; l < sizes.L; ++l) {
    config.layers.push_back(block);
    if ((l + 1) % sizes.period != 0) config.layers.back().window = sizes.window;
  }
  return config;
}

/// Each layer's experts, with one scratch for all.
static FeedForward experts_of(const std::vector<GptOssLayer>& layers, std::size_t rows,
                              std::size_t C) {
  const auto scratch = std::make_shared<ClampedScratch>(rows, layers[0].experts, C);
  return [&layers, scratch](const Block& block, ConstMatrix x, Matrix y, const Trace&) {
    clamped_experts_rows(x, layers[block.layer()].experts, *scratch, y);
  };
}

ModelState gpt_oss_state(const GptOss& gpt_oss, std::size_t S, StateOptions options) {
  expect_gpt_oss(gpt_oss);
  const Config& config = gpt_oss.model.config();
  const std::vector<GptOssLayer>& layers = gpt_oss.layers;
  expect_state_options(config, S, options);
  const std::size_t per_sequence =
      kv_cache_bytes(config.L, config.block.G, S, config.block.D, sizeof(float));
  expect_memory(double(options.sequences) * double(per_sequence),
                fmt::format("caches of S = {} positions", S), "make S smaller");
  std::vector<Tensor<1>> sinks;
  for (const GptOssLayer& layer : layers) sinks.push_back(layer.sinks);
  const std::vector<BlockSettings> settings = settings_of_all(config);
  const auto caches = std::make_shared<SharedCaches>(settings, std::vector<std::size_t>(), S,
                                                     std::min(options.chunk, S), options.sequences,
                                                     sink_kernel(settings, std::move(sinks), S));
  options.memory.attention = [caches](const Projected& in, Matrix heads, const Trace& trace) {
    (*caches)(in, heads, trace);
  };
  options.network = [&](std::span<const BlockSettings>, std::size_t rows) {
    return experts_of(layers, rows, config.block.C);
  };
  options.before_sum = [&layers](const Block& block, Part part, ConstMatrix, Matrix added) {
    if (part == Part::attention) add_bias(layers[block.layer()].b_o, added);
  };
  return ModelState(config, S, std::move(options));
}

}  // namespace t2t
