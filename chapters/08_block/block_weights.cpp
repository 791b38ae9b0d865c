#include "08_block/block_weights.hpp"

#include <fmt/format.h>

#include <cmath>

#include "shapes.hpp"

namespace t2t {

std::string full_name(const TensorInfo& info) {
  return (info.layer ? fmt::format("layer {}: ", *info.layer) : "") +
         (info.expert ? fmt::format("expert {}: ", *info.expert) : "") +
         (info.shared ? "shared: " : "") + std::string(info.name);
}

void expect_fits(const TensorInfo& info, const Tensor<1>& x) {
  if (x.size() != info.rows) expect_shape(full_name(info), x, {info.rows});
}

void expect_fits(const TensorInfo& info, const Weight& w) {
  if (w.rows() != info.rows || w.cols() != info.cols)
    expect_shape(full_name(info), w, {info.rows, info.cols});
}

void expect_weights(const BlockWeights& weights, const BlockSettings& settings) {
  expect(weights.experts.size() == settings.experts, "experts",
         fmt::format("E = {}", settings.experts), double(weights.experts.size()));
  for_each_tensor(weights, settings,
                  [](const TensorInfo& info, const auto& tensor) { expect_fits(info, tensor); });
}

BlockWeights room_for(const BlockSettings& settings) {
  BlockWeights weights;
  weights.experts.resize(settings.experts);
  return weights;
}

void draw_tensor(const TensorInfo& info, Random&, float, Tensor<1>& x) {
  x = xt::ones<float>({info.rows}) * (info.role == Role::gain ? 1.0f : 0.0f);
}

/// The standard deviation of a matrix's initial weights.
static float deviation(const TensorInfo& info, float residual_scale) {
  if (info.role == Role::embedding) return 0.02f;
  if (info.role == Role::positions) return 0.01f;
  const float scale = info.role == Role::into_stream ? residual_scale : 1;
  return scale / std::sqrt(float(info.cols));
}

void draw_tensor(const TensorInfo& info, Random& random, float residual_scale, Weight& w) {
  if (info.size() > 0)
    w = random.normal<2>({info.rows, info.cols}, deviation(info, residual_scale));
}

BlockWeights draw_block(const BlockSettings& settings, Random& random, float residual_scale) {
  expect_settings(settings);
  BlockWeights weights = room_for(settings);
  for_each_tensor(weights, settings, [&](const TensorInfo& info, auto& tensor) {
    draw_tensor(info, random, residual_scale, tensor);
  });
  return weights;
}

std::size_t parameter_count(const BlockWeights& weights) {
  std::size_t count = 0;  // of what each tensor holds: settings would only say what it should hold
  for_each_tensor(weights, BlockSettings{},
                  [&](const TensorInfo&, const auto& tensor) { count += tensor.size(); });
  return count;
}

}  // namespace t2t
