#include "08_block/block_settings.hpp"

#include <fmt/format.h>

#include <cmath>
#include <stdexcept>

namespace t2t {

BlockSettings llama_style(std::size_t C, std::size_t H, std::size_t G, std::size_t F) {
  if (H < 1 || C % H != 0)
    throw std::invalid_argument(fmt::format("C: wanted a multiple of H = {}, got {}", H, C));
  return {.C = C, .H = H, .G = G, .D = C / H, .F = F};
}

BlockSettings gpt2_style(std::size_t C, std::size_t H) {
  BlockSettings settings = llama_style(C, H, H, 4 * C);
  settings.norm = Norm::layer;
  settings.activation = Activation::gelu_tanh;
  settings.biases = Biases::all;
  settings.uses_rope = false;
  return settings;
}

std::string setting_errors(const BlockSettings& s) {
  std::string errors;  // while it stays empty, nothing is allocated
  const auto require = [&](bool holds, const char* form, const auto&... values) {
    if (holds) return;
    errors += (errors.empty() ? "" : "; ") + fmt::format(fmt::runtime(form), values...);
  };
  const char* at_least_1 = "{}: wanted at least 1, got 0";
  require(s.C >= 1, at_least_1, "C, the width");
  require(s.H >= 1, at_least_1, "H, the query heads");
  require(s.G >= 1, at_least_1, "G, the key and value heads");
  require(s.G < 1 || s.H % s.G == 0, "H, the query heads: wanted a multiple of G = {}, got {}", s.G,
          s.H);
  require(s.D >= 1 || s.H < 1,
          "D, the width of a head: wanted at least 1 (C = {} over H = {}?), got 0", s.C, s.H);
  require(!s.uses_rope || s.D % 2 == 0,
          "D, the width of a head: wanted an even number for RoPE, got {}", s.D);
  require(std::isfinite(s.theta) && s.theta > 0, "theta: wanted a number above 0, got {}", s.theta);
  require(s.frequencies.empty() || s.frequencies.size() == s.D / 2,
          "frequencies: wanted none, or D/2 = {}, got {}", s.D / 2, s.frequencies.size());
  for (const double frequency : s.frequencies)
    require(std::isfinite(frequency) && frequency > 0,
            "frequencies: wanted numbers above 0, got {}", frequency);
  require(std::isfinite(s.eps) && s.eps > 0, "eps: wanted a number above 0, got {}", s.eps);
  require(s.biases != Biases::all || !is_gated(s.activation),
          "biases: wanted none or those of q, k and v with a gated activation, got {}",
          activation_name(s.activation));
  require(s.experts == 0 ? s.chosen == 0 : s.chosen >= 1 && s.chosen <= s.experts,
          "chosen, the experts of a token: wanted {} to E = {}, got {}", s.experts > 0 ? 1 : 0,
          s.experts, s.chosen);
  require(s.shared == 0 || s.experts > 0,
          "shared, the width of a network beside experts: wanted 0 without experts, got {}",
          s.shared);
  require(!s.shared_gate || s.shared > 0, "shared_gate: wanted a shared network too, got none");
  require(!s.heads_together || s.head_norms, "heads_together: wanted head_norms too, got none");
  require(std::isfinite(s.score_scale) && s.score_scale >= 0,
          "score_scale: wanted 0 or a number above 0, got {}", s.score_scale);
  require(std::isfinite(s.score_cap) && s.score_cap >= 0,
          "score_cap: wanted 0 or a number above 0, got {}", s.score_cap);
  require(s.experts == 0 || s.F >= 1, "F, the width of an expert: wanted at least 1, got {}", s.F);
  return errors;
}

void expect_settings(const BlockSettings& settings) {
  const std::string errors = setting_errors(settings);
  if (!errors.empty()) throw std::invalid_argument(errors);
}

ScoreRule rule_of(const BlockSettings& settings) {
  return {Mask::sliding(settings.window), settings.score_scale, settings.score_cap};
}

RopeTable block_rope_table(const BlockSettings& settings, std::size_t S) {
  expect_settings(settings);
  if (!settings.uses_rope) return {};
  return rope_table(S, settings.frequencies.empty() ? rope_frequencies(settings.D, settings.theta)
                                                    : settings.frequencies);
}

}  // namespace t2t
