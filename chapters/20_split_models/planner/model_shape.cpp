#include "20_split_models/planner/model_shape.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>
#include <vector>

namespace t2t {

double attention_weights(const ModelShape& model) {
  if (model.attention > 0) return double(model.attention);
  return double(model.C) * double(model.D) * 2 * double(model.H + model.G);
}

/// Of one expert, or of the only network of a dense model.
static double weights_of_one(const ModelShape& model) {
  return double(model.matrices * model.C) * double(model.F);
}

double expert_weights(const ModelShape& model) {
  return model.experts == 1 ? 0 : double(model.experts) * weights_of_one(model);
}

double other_weights(const ModelShape& model) {
  const std::size_t networks = model.experts == 1 ? 1 : model.shared;
  return attention_weights(model) + double(networks) * weights_of_one(model);
}

/// What all blocks have if a token goes through `chosen` of a router's experts.
static double block_weights(const ModelShape& model, double chosen) {
  const double with_router = double(model.L - model.dense_blocks);
  const double dense = double(model.matrices * model.C) * double(model.dense_F);
  const double experts = model.experts == 1 ? 0 : chosen * weights_of_one(model);
  return with_router * (other_weights(model) + experts) +
         double(model.dense_blocks) * (attention_weights(model) + dense);
}

double parameters(const ModelShape& model) {
  return block_weights(model, double(model.experts)) + 2 * double(model.V * model.C);
}

double active_parameters(const ModelShape& model) {
  return block_weights(model, double(model.active)) + double(model.V * model.C);
}

// DeepSeek-V3's attention goes through low ranks: 1,536 for queries and 512 for keys and values. D
// is the mean of the 192 elements of its queries and keys and the 128 of its values.
static constexpr std::size_t deepseek_attention =
    7168 * 1536 + 1536 * 128 * 192 + 7168 * (512 + 64) + 512 * 128 * 256 + 128 * 128 * 7168;

static constexpr std::array models{
    ModelShape{"llama-2-7b", 32, 4096, 32, 32, 128, 32'000, 11'008},
    ModelShape{"llama-2-70b", 80, 8192, 64, 8, 128, 32'000, 28'672},
    ModelShape{"gpt-3-175b", 96, 12'288, 96, 96, 128, 50'257, 49'152, 2},
    ModelShape{"mixtral-8x7b", 32, 4096, 32, 8, 128, 32'000, 14'336, 3, 8, 2},
    ModelShape{"deepseek-v3", 61, 7168, 128, 128, 160, 129'280, 2048, 3, 256, 8, 1, 3, 18'432,
               deepseek_attention},
    ModelShape{"llama-3-405b", 126, 16'384, 128, 8, 128, 128'256, 53'248}};

std::span<const ModelShape> known_models() { return models; }

const ModelShape& known_model(std::string_view name) {
  const auto found = std::ranges::find(models, name, &ModelShape::name);
  if (found != models.end()) return *found;
  std::vector<std::string_view> names;
  for (const ModelShape& model : models) names.push_back(model.name);
  throw std::invalid_argument(
      fmt::format("--plan: wanted one of {}, got {}", fmt::join(names, ", "), name));
}

}  // namespace t2t
