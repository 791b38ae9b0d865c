#include "09_language_model/config.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cmath>
#include <stdexcept>
#include <string>

namespace t2t {

std::span<const std::string_view> preset_names() {
  static constexpr std::array<std::string_view, 4> names = {"foundry-small", "gpt2", "smollm2-135m",
                                                            "llama2-7b"};
  return names;
}

Config preset(std::string_view name) {
  if (name == "foundry-small")
    return {.C = 256, .L = 4, .H = 8, .G = 4, .D = 32, .F = 682, .V = 8192, .T_max = 256};
  if (name == "llama2-7b")
    return {.C = 4096, .L = 32, .H = 32, .G = 32, .D = 128, .F = 11008, .V = 32000, .T_max = 4096};
  if (name == "smollm2-135m")
    return {.C = 576,
            .L = 30,
            .H = 9,
            .G = 3,
            .D = 64,
            .F = 1536,
            .V = 49152,
            .T_max = 8192,
            .tied = true,
            .theta = 100000};
  if (name == "gpt2")
    return {.C = 768,
            .L = 12,
            .H = 12,
            .G = 12,
            .D = 64,
            .F = 3072,
            .V = 50257,
            .T_max = 1024,
            .tied = true,
            .norm = Norm::layer,
            .positions = Positions::learned,
            .activation = Activation::gelu_tanh,
            .biases = true};
  throw std::invalid_argument(
      fmt::format("preset: wanted one of {}, got {}", fmt::join(preset_names(), ", "), name));
}

/// About as many numbers as there are in the model, in an arithmetic that can't overflow.
static double about_parameters(const Config& c) {
  const double C = double(c.C), heads = double(c.H + c.G) * double(c.D);
  return 2 * double(c.V) * C + double(c.T_max) * C +
         double(c.L) * C * (2 * heads + 3 * double(c.F) + 8);
}

void expect_config(const Config& config) {
  const auto& [C, L, H, G, D, F, V, T_max, tied, norm, positions, activation, biases, pairing,
               theta, eps] = config;
  std::string reasons;  // stays empty, so nothing is allocated, when all is well
  const auto expect = [&](bool holds, const char* form, const auto&... values) {
    if (holds) return;
    reasons += (reasons.empty() ? "" : "; ") + fmt::format(fmt::runtime(form), values...);
  };

  const char* at_least_1 = "{}: wanted at least 1, got 0";
  expect(C >= 1, at_least_1, "C, the width");
  expect(L >= 1, at_least_1, "L, the blocks");
  expect(H >= 1, at_least_1, "H, the query heads");
  expect(G >= 1, at_least_1, "G, the key and value heads");
  expect(G < 1 || H % G == 0, "H, the query heads: wanted a multiple of G = {}, got {}", G, H);
  expect(D >= 1 || H < 1, "D, the width of a head: wanted at least 1 (C = {} over H = {}?), got 0",
         C, H);
  expect(positions != Positions::rope || D % 2 == 0,
         "D, the width of a head: wanted an even number for RoPE, got {}", D);
  expect(F >= 1, at_least_1, "F, the feed-forward width");
  expect(V >= 1, at_least_1, "V, the vocabulary");
  expect(T_max >= 1, at_least_1, "T_max, the context");
  expect(std::isfinite(theta) && theta > 0, "theta: wanted a number above 0, got {}", theta);
  expect(std::isfinite(eps) && eps > 0, "eps: wanted a number above 0, got {}", eps);
  expect(!biases || !is_gated(activation), "biases: wanted none with a gated activation, got {}",
         activation_name(activation));
  expect(about_parameters(config) < 1e18, "the sizes: wanted under 1e18 parameters, got {:.0e}",
         about_parameters(config));

  if (!reasons.empty()) throw std::invalid_argument("config: " + reasons);
}

BlockSettings block_settings(const Config& config) {
  return {.C = config.C,
          .H = config.H,
          .G = config.G,
          .D = config.D,
          .F = config.F,
          .norm = config.norm,
          .norm_place = NormPlace::before,
          .activation = config.activation,
          .biases = config.biases,
          .turned = config.positions == Positions::rope,
          .pairing = config.pairing,
          .theta = config.theta,
          .eps = config.eps};
}

Config resized(Config config, const Sizes& sizes) {
  const auto replace = [](std::size_t& size, std::size_t by) { size = by > 0 ? by : size; };
  replace(config.C, sizes.C);
  replace(config.L, sizes.L);
  replace(config.H, sizes.H);
  replace(config.G, sizes.G);
  replace(config.V, sizes.V);
  replace(config.T_max, sizes.T_max);

  // What usually follows from the width and the heads follows, unless it is given.
  if (sizes.C > 0 || sizes.H > 0) config.D = config.C % config.H == 0 ? config.C / config.H : 0;
  if (sizes.C > 0) config.F = is_gated(config.activation) ? gated_width(config.C, 1) : 4 * config.C;
  replace(config.D, sizes.D);
  replace(config.F, sizes.F);
  return config;
}

}  // namespace t2t
