#include "09_language_model/model.hpp"

#include <fmt/format.h>

#include <cmath>
#include <stdexcept>
#include <string>

#include "03_rope/positions.hpp"
#include "08_block/block.hpp"
#include "09_language_model/forward.hpp"
#include "shapes.hpp"

namespace t2t {

ModelWeights draw_model(const Config& config, Random& random) {
  expect_config(config);
  ModelWeights weights;
  weights.blocks.resize(config.L);
  // 2·L parts add to the stream: each a bit, so that the sum keeps about the size of one.
  const float residual_scale = 1 / std::sqrt(2 * float(config.L));
  for_each_tensor(weights, config, [&](const TensorInfo& info, auto& tensor) {
    draw_tensor(info, random, residual_scale, tensor);
  });
  return weights;
}

std::size_t parameter_count(const ModelWeights& weights) {
  std::size_t count = 0;
  Config any{};
  any.L = weights.blocks.size();
  for_each_tensor(weights, any,
                  [&](const TensorInfo&, const auto& tensor) { count += tensor.size(); });
  return count;
}

Model::Model(Config config, ModelWeights weights)
    : config_(std::move(config)), weights_(std::move(weights)) {
  expect_config(config_);
  if (weights_.blocks.size() != config_.L)
    throw std::invalid_argument(
        fmt::format("blocks: wanted L = {}, got {}", config_.L, weights_.blocks.size()));
  for_each_tensor(weights_, config_,
                  [](const TensorInfo& info, const auto& tensor) { expect_fits(info, tensor); });
  if (weights_.positions.is_packed())
    throw std::invalid_argument("positions: wanted floats, got packed numbers");
  for (std::size_t l = 0; l < config_.L; ++l)
    blocks_.emplace_back(settings_of(config_, l), weights_.blocks[l], l);
}

const Weight& Model::head() const {
  return config_.tied ? weights_.embedding : weights_.head;
}

Tensor<2> language_model(std::span<const int> ids, const Model& model) {
  const Config& config = model.config();
  const std::size_t T = ids.size();
  expect(T >= 1 && T <= config.T_max, "T, the tokens",
         "1 to T_max = " + std::to_string(config.T_max), double(T));

  Tensor<2> x = empty(T, config.block.C);  // [T, C]
  embed_tokens(model, ids, 0, x);
  for (std::size_t l = 0; l < config.L; ++l) {
    const BlockSettings& settings = settings_of(config, l);
    x = block(x, model.weights().blocks[l], settings, block_rope_table(settings, T));
  }
  x = norm(x, model.weights().final_norm, config.block.norm, config.block.eps);
  return matmul_bt(x, model.head());  // [T, V]
}

}  // namespace t2t
