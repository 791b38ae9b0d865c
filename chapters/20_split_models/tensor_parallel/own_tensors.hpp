// What the trainers of models in parts have in common: lists of the tensors that a rank has, and
// the norm of all ranks' gradients.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "13_training/trainer/tensor_list.hpp"

namespace t2t {

using IsOwn = std::function<bool(const TensorInfo& info)>;

/// The tensors, of those that a model of this config has, for which is_own holds.
std::vector<ListedTensor> own_tensors(ModelWeights& weights, const Config& config,
                                      const IsOwn& is_own);
std::vector<ListedTensor> own_tensors(Model& model, const Config& config, const IsOwn& is_own);

/// Σ g² over the tensors that this rank counts: what several ranks have, one of them counts.
double squares_of(const std::vector<ListedTensor>& gradients,
                  const std::function<bool(const ListedTensor&)>& counts);

/// The root of all ranks' squares. Throws std::runtime_error, naming the step and the loss, unless
/// the norm and the loss are finite.
double finite_norm(double squares, std::size_t step, double loss);

}  // namespace t2t
