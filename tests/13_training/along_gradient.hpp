// The check of a whole gradient by a few losses: along it the loss grows by the square of its norm,
// and along random signs by what it promises there. The first finds numbers that are wrong, the
// second also numbers that are missing: where a gradient is 0, its own direction does not move.
#pragma once

#include <cmath>
#include <utility>
#include <vector>

#include "09_language_model/cases.hpp"
#include "13_training/trainer/tensor_list.hpp"
#include "random.hpp"

namespace t2t {

/// Moves each number by h times that of `way`.
inline void move_along(const std::vector<ListedTensor>& way, double h,
                       const std::vector<ListedTensor>& weights) {
  for (std::size_t i = 0; i < weights.size(); ++i)
    for (std::size_t j = 0; j < weights[i].numbers.size(); ++j)
      weights[i].numbers[j] += float(h * double(way[i].numbers[j]));
}

/// Σ a·b over all numbers of all tensors.
inline double dot(const std::vector<ListedTensor>& left, const std::vector<ListedTensor>& right) {
  double sum = 0;
  for (std::size_t i = 0; i < left.size(); ++i)
    for (std::size_t j = 0; j < left[i].numbers.size(); ++j)
      sum += double(left[i].numbers[j]) * double(right[i].numbers[j]);
  return sum;
}

inline double dot(ModelWeights& a, ModelWeights& b, const Config& config) {
  return dot(tensors_of(a, config), tensors_of(b, config));
}

/// The slope of loss(model) when its weights move by h·way to either side.
template <class Loss>
double slope_of(ModelWeights& way, const Config& config, const ModelWeights& weights, double h,
                Loss loss) {
  const auto loss_at = [&](double h) {
    ModelWeights moved = weights;
    move_along(tensors_of(way, config), h, tensors_of(moved, config));
    return loss(Model(config, std::move(moved)));
  };
  return (loss_at(h) - loss_at(-h)) / (2 * h);
}

/// The loss's slope along its gradients divided by the square of their norm: 1 if they are right.
/// loss(model) is the loss whose gradients these are; the weights are moved by so far to either
/// side. The slope is off by the square of that times the loss's third derivative.
template <class Loss>
double slope_along(ModelWeights& gradients, const Config& config, const ModelWeights& weights,
                   double distance, Loss loss) {
  const double square = dot(gradients, gradients, config);
  return slope_of(gradients, config, weights, distance / std::sqrt(square), loss) / square;
}
template <class Loss>
double slope_along(ModelWeights& gradients, const Case& c, double distance, Loss loss) {
  return slope_along(gradients, c.config, c.weights(), distance, loss);
}

/// How far the loss's slopes along random signs are from Σ sign·gradient, as a share of the
/// gradients' norm: the root mean square of some draws, about |d|/norm if the gradients are off by
/// d. `step` is how far each number moves.
template <class Loss>
double off_at_random(ModelWeights& gradients, const Case& c, double step, Loss loss) {
  constexpr std::size_t draws = 4;
  Random random(1);
  const ModelWeights weights = c.weights();
  ModelWeights signs = weights;
  double squares = 0;
  for (std::size_t n = 0; n < draws; ++n) {
    for (const ListedTensor& tensor : tensors_of(signs, c.config))
      for (float& sign : tensor.numbers) sign = random.next_uniform() < 0.5 ? 1 : -1;
    const double off =
        slope_of(signs, c.config, weights, step, loss) - dot(signs, gradients, c.config);
    squares += off * off;
  }
  return std::sqrt(squares / double(draws) / dot(gradients, gradients, c.config));
}

}  // namespace t2t
