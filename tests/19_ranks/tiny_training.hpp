// A training so small that every rank count can do 20 steps of it, and what one rank says of it.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>
#include <vector>

#include "13_training/trainer/trainer.hpp"
#include "random.hpp"

namespace t2t::tiny_training {

using Floats = std::vector<float>;

constexpr std::size_t T = 8, steps = 20;

inline std::vector<int> tiny_ids() {
  std::vector<int> ids;
  for (int i = 0; i < 2000; ++i) ids.push_back((i * i + i / 7) % 97);
  return ids;
}

inline TrainingOptions options_of(std::size_t parts, float dropout = 0) {
  TrainingOptions options{.B = 1, .T = T, .parts = parts, .dropout = dropout, .seed = 3};
  options.schedule = {.peak = 1e-2f, .floor = 1e-3f, .warmup = 2, .steps = steps};
  return options;
}

inline Model drawn(const Config& config, std::uint64_t seed) {
  Random random(seed);
  return Model(config, draw_model(config, random));
}

/// All of a model's weights, or gradients, one tensor after the other.
inline Floats elements_of(ModelWeights weights, const Config& config) {
  Floats all;
  for (const ListedTensor& tensor : tensors_of(weights, config))
    all.insert(all.end(), tensor.numbers.begin(), tensor.numbers.end());
  return all;
}
inline Floats weights_of(const Model& model) {
  return elements_of(model.weights(), model.config());
}

/// A double as two floats, so that equal doubles give equal floats.
inline void append(Floats& to, double x) {
  to.push_back(float(x));
  to.push_back(float(x - double(float(x))));
}

/// The gradient of a part of a step's batch, and the sum of its losses.
inline std::pair<Floats, double> part_of(const Model& model, const TrainingOptions& options,
                                         std::size_t number) {
  const std::vector<int> ids = tiny_ids();
  Windows windows(ids, T, options.seed);
  Batch batch = make_batch(options.B, T);
  windows.fill(batch, number * options.B);
  ModelWeights gradients = zeros_of(model.config());
  Gradients passes(model.config(), options.B, T);
  const float scale = 1 / float(options.parts * options.B * T);
  const double loss = passes.add(model, batch, scale, gradients);
  return {elements_of(std::move(gradients), model.config()), loss};
}

/// The worst error of a step's gradient as a share of its bound, and the loss's of what two floats
/// hold. The parts are added in double; a sum of n floats in any order is off by at most
/// (n − 1)·2^-24 times the sum of their magnitudes.
inline Floats errors_of(const Model& before, const TrainingOptions& options, std::size_t step,
                        std::span<const float> gradient, double loss) {
  std::vector<double> sum(gradient.size()), magnitude(gradient.size());
  double losses = 0;
  for (std::size_t part = 0; part < options.parts; ++part) {
    const auto [own, own_loss] = part_of(before, options, step * options.parts + part);
    losses += own_loss / double(options.parts * options.B * T);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += own[i], magnitude[i] += std::abs(own[i]);
  }
  double worst = 0;
  for (std::size_t i = 0; i < sum.size(); ++i) {
    const double bound = double(options.parts - 1) * 0x1p-24 * magnitude[i] * 1.001;
    if (!(std::abs(gradient[i] - sum[i]) <= bound)) worst = std::max(worst, 2.0);
    if (bound > 0) worst = std::max(worst, std::abs(gradient[i] - sum[i]) / bound);
  }
  return {float(worst), float(std::abs(loss - losses) / (0x1p-45 * losses))};
}

}  // namespace t2t::tiny_training
