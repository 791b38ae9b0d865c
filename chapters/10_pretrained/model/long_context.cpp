#include "10_pretrained/model/long_context.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <stdexcept>
#include <string>
#include <utility>

#include "03_rope/scaling/rope_scaling.hpp"
#include "program/print.hpp"

namespace t2t {

static constexpr std::pair<std::string_view, RopeScaling> names[] = {
    {"none", RopeScaling::none},
    {"linear", RopeScaling::linear},
    {"ntk", RopeScaling::ntk},
    {"llama3", RopeScaling::llama3},
    {"yarn", RopeScaling::yarn}};

/// NaN unless the text is a number and nothing else. (libc++ has no std::from_chars for floats.)
static double number_of(const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  const bool decimal = text.find_first_not_of("0123456789.eE+-") == std::string::npos;
  return decimal && !text.empty() && end == text.c_str() + text.size() ? number : NAN;
}

LongContext parse_long_context(std::string_view text) {
  const std::size_t equals = std::min(text.find('='), text.size());
  const auto found = std::ranges::find(names, text.substr(0, equals),
                                       &std::pair<std::string_view, RopeScaling>::first);
  const double factor = number_of(std::string(text.substr(std::min(equals + 1, text.size()))));
  if (found == std::end(names) || !(factor >= 1 && factor <= 1024))
    throw std::invalid_argument(fmt::format(
        "RoPE's scaling: wanted none, linear, ntk, llama3 or yarn, '=' and a factor from 1 to 1024 "
        "as in yarn=2, got {}",
        visible(text)));
  return {found->second, factor};
}

static Frequencies scaled(const BlockSettings& block, std::size_t trained, LongContext longer) {
  const double theta = double(block.theta), factor = longer.factor;
  const Frequencies plain = rope_frequencies(block.D, theta);  // [D/2]
  switch (longer.scaling) {
    case RopeScaling::linear:
      return linear_scaling(plain, factor);
    case RopeScaling::ntk:
      return ntk_scaling(block.D, theta, factor);
    case RopeScaling::llama3:
      return llama3_scaling(plain, {.factor = factor, .trained = trained});
    case RopeScaling::yarn:
      return yarn_scaling(block.D, theta, {.factor = factor, .trained = trained});
    case RopeScaling::none:
      break;
  }
  return block.frequencies;
}

/// YaRN multiplies cos and sin of q and of k by its magnitude, so each score by its square.
/// Rotation is linear: a q so much larger gives the same scores. Where q has a norm for its heads,
/// the norm's gain and bias grow; elsewhere the projection does.
static void scale_queries(ModelWeights& weights, float by) {
  for (BlockWeights& block : weights.blocks) {
    if (block.q_norm.gain.size() > 0) {
      block.q_norm.gain *= by;
      block.q_norm.bias *= by;
    } else {
      block.w_q.floats() *= by;
      block.b_q *= by;
    }
  }
}

Model with_long_context(Model model, const LongContext& longer) {
  Config config = model.config();
  const std::size_t trained = config.T_max;
  const auto lengthen = [&](BlockSettings& block) {
    if (longer.scaling != RopeScaling::none && (!block.uses_rope || !block.frequencies.empty()))
      throw std::invalid_argument(
          "RoPE's scaling: wanted a model with RoPE that is not scaled yet");
    block.frequencies = scaled(block, trained, longer);
  };
  lengthen(config.block);
  for (BlockSettings& block : config.layers) lengthen(block);
  config.T_max = std::size_t(double(trained) * longer.factor);
  ModelWeights weights = std::move(model).release();
  if (longer.scaling == RopeScaling::yarn)
    scale_queries(weights, std::pow(yarn_magnitude(longer.factor), 2.0f));
  return Model(config, std::move(weights));
}

}  // namespace t2t
