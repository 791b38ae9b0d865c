// The check of a whole gradient by two losses: along it the loss grows by the square of its norm.
#pragma once

#include <cmath>

#include "09_language_model/cases.hpp"
#include "13_training/trainer/tensor_list.hpp"

namespace t2t {

/// The case's weights, moved by h times the gradients.
inline ModelWeights moved_along(ModelWeights& gradients, const Case& c, double h) {
  ModelWeights weights = c.weights();
  const std::vector<ListedTensor> to = tensors_of(weights, c.config);
  const std::vector<ListedTensor> along = tensors_of(gradients, c.config);
  for (std::size_t i = 0; i < to.size(); ++i)
    for (std::size_t j = 0; j < to[i].numbers.size(); ++j)
      to[i].numbers[j] += float(h * double(along[i].numbers[j]));
  return weights;
}

/// The loss's slope along its gradients divided by the square of their norm: 1 if they are right.
/// loss(model) is the loss whose gradients these are; the weights are moved by so far to either
/// side. The slope is off by the square of that times the loss's third derivative.
template <class Loss>
double slope_along(ModelWeights& gradients, const Case& c, double distance, Loss loss) {
  double square = 0;
  for (const ListedTensor& tensor : tensors_of(gradients, c.config))
    for (const float g : tensor.numbers) square += double(g) * double(g);
  const double h = distance / std::sqrt(square);
  const auto loss_at = [&](double h) {
    return loss(Model(c.config, moved_along(gradients, c, h)));
  };
  return (loss_at(h) - loss_at(-h)) / (2 * h) / square;
}

}  // namespace t2t
