#include "09_language_model/model.hpp"

#include <fmt/format.h>

#include <cmath>
#include <stdexcept>

#include "01_embedding/embedding.hpp"
#include "02_normalization/layer_norm.hpp"
#include "02_normalization/rms_norm.hpp"
#include "03_rope/positions.hpp"
#include "lanes.hpp"
#include "rows.hpp"
#include "shapes.hpp"

namespace t2t {

ModelWeights draw_model(const Config& config, Random& random) {
  expect_config(config);
  const std::size_t C = config.C, V = config.V, L = config.L;
  ModelWeights weights;
  weights.embedding = embedding_table(V, C, random);
  if (config.positions == Positions::learned)
    weights.positions = learned_positions(config.T_max, C, random);

  // 2·L parts add to the stream: each a bit, so that the sum keeps about the size of one.
  for (std::size_t l = 0; l < L; ++l)
    weights.blocks.push_back(
        block_weights(block_settings(config), random, 1 / std::sqrt(2 * float(L))));

  weights.final_norm.gain = xt::ones<float>({C});
  weights.final_norm.bias = xt::zeros<float>({config.norm == Norm::layer ? C : 0});
  if (!config.tied) weights.head = embedding_table(V, C, random);
  return weights;
}

void expect_model(const ModelWeights& weights, const Config& config) {
  const std::size_t C = config.C, V = config.V, L = config.L;
  const bool learned = config.positions == Positions::learned;
  expect_shape("embedding", weights.embedding, {V, C});
  expect_shape("positions", weights.positions, {learned ? config.T_max : 0, learned ? C : 0});
  expect_shape("final_norm.gain", weights.final_norm.gain, {C});
  expect_shape("final_norm.bias", weights.final_norm.bias, {config.norm == Norm::layer ? C : 0});

  // A head that would be ignored is a mistake as much as a missing one.
  expect_shape("head", weights.head, {config.tied ? 0 : V, config.tied ? 0 : C});

  if (weights.blocks.size() != L)
    throw std::invalid_argument(
        fmt::format("blocks: wanted L = {}, got {}", L, weights.blocks.size()));
  const BlockSettings settings = block_settings(config);
  for (std::size_t l = 0; l < L; ++l) try {
      expect_weights(weights.blocks[l], settings);
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument(fmt::format("layer {}: {}", l, error.what()));
    }
}

const Tensor<2>& head_of(const ModelWeights& weights, const Config& config) {
  return config.tied ? weights.embedding : weights.head;
}

std::size_t parameter_count(const ModelWeights& weights) {
  std::size_t count = weights.embedding.size() + weights.positions.size() + weights.head.size() +
                      weights.final_norm.gain.size() + weights.final_norm.bias.size();
  for (const BlockWeights& block : weights.blocks) count += parameter_count(block);
  return count;
}

Tensor<2> language_model(std::span<const int> ids, const ModelWeights& weights,
                         const Config& config) {
  expect_config(config);
  expect_model(weights, config);
  const std::size_t T = ids.size();
  expect(T >= 1 && T <= config.T_max, "T, the tokens",
         "1 to T_max = " + std::to_string(config.T_max), double(T));
  const BlockSettings settings = block_settings(config);
  const RopeTable table = block_rope_table(settings, T);

  Tensor<2> x = embed(ids, weights.embedding);  // [T, C]
  if (config.positions == Positions::learned) x = with_positions(x, weights.positions, 0);

  for (const BlockWeights& weights_l : weights.blocks) x = block(x, weights_l, settings, table);

  const auto& [gain, bias] = weights.final_norm;
  x = config.norm == Norm::rms ? rms_norm(x, gain, config.eps)
                               : layer_norm(x, gain, bias, config.eps);
  return unembed(x, head_of(weights, config));  // [T, V]
}

/// −ln softmax(logits)[id], without ever making the probabilities, which may round to 0.
static double surprise(ConstRow logits, int id) {
  const float highest = max_row(logits);
  const float sum = sum_of(
      logits, [&](Lanes v) { return xsimd::exp(v - Lanes(highest)); },
      -std::numeric_limits<float>::infinity());
  return std::log(double(sum)) + double(highest) - double(logits[std::size_t(id)]);
}

double next_token_loss(ConstMatrix logits, std::span<const int> ids) {
  const std::size_t T = ids.size(), V = logits.cols;
  expect(T >= 2, "T, the tokens of a loss", "at least 2", double(T));
  expect_shape("logits", logits, {T, V});
  embed_rows(ids, {nullptr, V, 0, 0}, {nullptr, T, 0, 0});  // no columns: it only checks the ids

  // What token t foretells is token t + 1; nothing follows the last.
  Tensor<1> losses = empty(T - 1);
  for_each_row(T - 1, V,
               [&](std::size_t t) { losses(t) = float(surprise(logits.row(t), ids[t + 1])); });
  double sum = 0;
  for (const float loss : losses) sum += double(loss);
  return sum / double(T - 1);
}

}  // namespace t2t
