#include "09_language_model/fast/model.hpp"

#include <fmt/format.h>

#include <cmath>
#include <stdexcept>
#include <utility>

namespace t2t {

ModelWeights room_for(const Config& config) {
  ModelWeights weights;
  weights.blocks.reserve(config.L);
  for (std::size_t l = 0; l < config.L; ++l)
    weights.blocks.push_back(room_for(settings_of(config, l)));
  return weights;
}

ModelWeights draw_model(const Config& config, Random& random) {
  expect_config(config);
  ModelWeights weights = room_for(config);
  // 2·L sublayers add to the stream: scaled down, they sum to about the size of one.
  const float residual_scale = 1 / std::sqrt(2 * float(config.L));
  for_each_tensor(weights, config, [&](const TensorInfo& info, auto& tensor) {
    draw_tensor(info, random, residual_scale, tensor);
  });
  return weights;
}

/// The sum of f(tensor) over all tensors. The list needs only L: f reads no shape from a Config.
template <class F>
static std::size_t sum_of_tensors(const ModelWeights& weights, F f) {
  Config any{};
  any.L = weights.blocks.size();
  std::size_t sum = 0;
  for_each_tensor(weights, any, [&](const TensorInfo&, const auto& tensor) { sum += f(tensor); });
  return sum;
}

std::size_t parameter_count(const ModelWeights& weights) {
  return sum_of_tensors(weights, [](const auto& tensor) { return tensor.size(); });
}

static std::size_t storage(const Tensor<1>& x) { return x.size() * sizeof(float); }
static std::size_t storage(const Weight& w) { return w.bytes(); }

std::size_t bytes(const ModelWeights& weights) {
  return sum_of_tensors(weights, [](const auto& tensor) { return storage(tensor); });
}

double bytes_a_token(const ModelWeights& weights, const Config& config) {
  double sum = 0;
  for_each_tensor(weights, config, [&](const TensorInfo& info, const auto& tensor) {
    const BlockSettings& of = info.layer ? settings_of(config, *info.layer) : config.block;
    sum += double(storage(tensor)) * (info.expert ? double(of.chosen) / double(of.experts) : 1);
  });
  return sum;
}

Model::Model(Config config, ModelWeights weights)
    : config_(std::move(config)), weights_(std::move(weights)) {
  expect_config(config_);
  trust_weights();
}

/// Checks the weights, and makes the blocks that refer to them.
void Model::trust_weights() {
  if (weights_.blocks.size() != config_.L)
    throw std::invalid_argument(
        fmt::format("blocks: wanted L = {}, got {}", config_.L, weights_.blocks.size()));
  for_each_tensor(weights_, config_,
                  [](const TensorInfo& info, const auto& tensor) { expect_fits(info, tensor); });
  if (weights_.positions.is_packed())
    throw std::invalid_argument("positions: wanted floats, got packed numbers");
  blocks_.clear();
  for (std::size_t l = 0; l < config_.L; ++l)
    blocks_.emplace_back(settings_of(config_, l), weights_.blocks.at(l), l);
}

ModelWeights Model::release() && {
  blocks_.clear();
  return std::move(weights_);
}

// [head]
const Weight& Model::head() const { return config_.tied ? weights_.embedding : weights_.head; }
// [/head]

}  // namespace t2t
