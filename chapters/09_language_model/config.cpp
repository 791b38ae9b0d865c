#include "09_language_model/config.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>
#include <string>

#include "07_swiglu/feed_forward.hpp"
#include "utf8_start.hpp"

namespace t2t {

const BlockSettings& settings_of(const Config& config, std::size_t l) {
  return config.layers.empty() ? config.block : config.layers[l];
}

std::vector<BlockSettings> settings_of_all(const Config& config) {
  return config.layers.empty() ? std::vector(config.L, config.block) : config.layers;
}

std::vector<Difference> differences_from_llama(const Config& config) {
  // As in chapter 08's differences_from_llama, a new member does not compile before it stands here.
  const auto& [block, L, V, T_max, tied, learned_positions, embedding_scale, logit_scale, logit_cap,
               layers] = config;
  std::vector<Difference> differences = differences_from_llama(block);
  const auto list = [&](bool differs, Difference difference) {
    if (differs && std::ranges::find(differences, difference) == differences.end())
      differences.push_back(difference);
  };
  for (const BlockSettings& layer : layers)
    for (const Difference difference : differences_from_llama(layer)) list(true, difference);
  list(learned_positions, Difference::learned_positions);
  list(embedding_scale != 1, Difference::scaled_embedding);
  list(logit_scale != 1, Difference::scaled_logits);
  list(logit_cap > 0, Difference::logit_cap);
  list(tied, Difference::tied);
  list(!layers.empty(), Difference::layers_differ);
  return differences;
}

std::span<const std::string_view> preset_names() {
  static constexpr std::array<std::string_view, 4> names = {"foundry-small", "gpt2", "smollm2-135m",
                                                            "llama2-7b"};
  return names;
}

Config preset(std::string_view name) {
  if (name == "foundry-small")
    return {.block = llama_style(256, 8, 4, 682), .L = 4, .V = 8192, .T_max = 256};
  if (name == "llama2-7b")
    return {.block = llama_style(4096, 32, 32, 11008), .L = 32, .V = 32000, .T_max = 4096};
  if (name == "smollm2-135m") {
    Config config{
        .block = llama_style(576, 9, 3, 1536), .L = 30, .V = 49152, .T_max = 8192, .tied = true};
    config.block.theta = 100000;
    return config;
  }
  if (name == "gpt2")
    return {.block = gpt2_style(768, 12),
            .L = 12,
            .V = 50257,
            .T_max = 1024,
            .tied = true,
            .learned_positions = true};
  throw std::invalid_argument(fmt::format("preset: wanted one of {}, got {}",
                                          fmt::join(preset_names(), ", "), printable(name)));
}

/// Roughly the parameters of a block, in floating point, which does not overflow here.
static double about_parameters(const BlockSettings& s) {
  const double networks = double(std::max<std::size_t>(s.experts, 1));
  return double(s.C) * (2 * double(s.H + s.G) * double(s.D) + 3 * double(s.F) * networks +
                        3 * double(s.shared) + 8);
}
static double about_parameters(const Config& config) {
  const double C = double(config.block.C);
  double blocks = config.layers.empty() ? double(config.L) * about_parameters(config.block) : 0;
  for (const BlockSettings& settings : config.layers) blocks += about_parameters(settings);
  return 2 * double(config.V) * C + double(config.T_max) * C + blocks;
}

void expect_config(const Config& config) {
  std::string reasons;  // stays empty, and so allocates nothing, when there are none
  const auto refuse = [&](const std::string& reason) {
    reasons += (reasons.empty() ? "" : "; ") + reason;
  };
  const std::string of_block = setting_errors(config.block);
  if (!of_block.empty()) refuse(of_block);
  if (config.L < 1) refuse("L, the blocks: wanted at least 1, got 0");
  if (config.V < 1) refuse("V, the vocabulary: wanted at least 1, got 0");
  if (config.T_max < 1) refuse("T_max, the context: wanted at least 1, got 0");

  if (!(std::isfinite(config.embedding_scale) && config.embedding_scale > 0))
    refuse(fmt::format("embedding_scale: wanted a number above 0, got {}", config.embedding_scale));
  if (!(std::isfinite(config.logit_scale) && config.logit_scale > 0))
    refuse(fmt::format("logit_scale: wanted a number above 0, got {}", config.logit_scale));
  if (!(std::isfinite(config.logit_cap) && config.logit_cap >= 0))
    refuse(fmt::format("logit_cap: wanted 0 or a number above 0, got {}", config.logit_cap));

  const std::vector<BlockSettings>& layers = config.layers;
  if (!layers.empty() && layers.size() != config.L)
    refuse(fmt::format("layers: wanted none, or L = {}, got {}", config.L, layers.size()));
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const std::string of_layer = setting_errors(layers[l]);
    if (!of_layer.empty()) refuse(fmt::format("layer {}: {}", l, of_layer));
    if (layers[l].C != config.block.C)
      refuse(fmt::format("layer {}: C: wanted {}, got {}", l, config.block.C, layers[l].C));
  }

  const double parameters = about_parameters(config);
  if (!(parameters < 1e18))
    refuse(fmt::format("the sizes: wanted under 1e18 parameters, got {:.0e}", parameters));
  if (!reasons.empty()) throw std::invalid_argument("config: " + reasons);
}

Config resized(Config config, const Sizes& sizes) {
  const auto replace = [](std::size_t& size, std::size_t by) { size = by > 0 ? by : size; };
  BlockSettings& block = config.block;
  config.layers.clear();
  replace(block.C, sizes.C);
  replace(block.H, sizes.H);
  replace(block.G, sizes.G);
  replace(config.L, sizes.L);
  replace(config.V, sizes.V);
  replace(config.T_max, sizes.T_max);

  // Sizes that usually follow from the width and the heads do so, unless they are given.
  if (sizes.C > 0 || sizes.H > 0)
    block.D = block.H > 0 && block.C % block.H == 0 ? block.C / block.H : 0;
  if (sizes.C > 0) block.F = is_gated(block.activation) ? gated_width(block.C, 1) : 4 * block.C;
  replace(block.D, sizes.D);
  replace(block.F, sizes.F);
  return config;
}

}  // namespace t2t
