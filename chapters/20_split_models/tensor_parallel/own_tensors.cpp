#include "20_split_models/tensor_parallel/own_tensors.hpp"

#include <fmt/format.h>

#include <cmath>
#include <stdexcept>

#include "13_training/trainer/optimizer.hpp"

namespace t2t {

std::vector<ListedTensor> own_tensors(ModelWeights& weights, const Config& config,
                                      const IsOwn& is_own) {
  std::vector<ListedTensor> list;
  for_each_tensor(weights, config, [&](const TensorInfo& info, auto& tensor) {
    if (info.size() > 0 && is_own(info)) list.push_back({info, numbers_of(tensor)});
  });
  return list;
}

std::vector<ListedTensor> own_tensors(Model& model, const Config& config, const IsOwn& is_own) {
  std::vector<ListedTensor> list;
  model.change_weights([&](ModelWeights& weights) { list = own_tensors(weights, config, is_own); });
  return list;
}

double squares_of(const std::vector<ListedTensor>& gradients,
                  const std::function<bool(const ListedTensor&)>& counts) {
  double sum = 0;
  for (const ListedTensor& tensor : gradients) {
    if (!counts(tensor)) continue;
    const double norm = gradient_norm({tensor});
    sum += norm * norm;
  }
  return sum;
}

double finite_norm(double squares, std::size_t step, double loss) {
  const double norm = std::sqrt(squares);
  if (!std::isfinite(norm) || !std::isfinite(loss))
    throw std::runtime_error(fmt::format(
        "step {}: the gradient is not finite (loss {:.3g}); wanted a lower rate or more warm-up",
        step, loss));
  return norm;
}

}  // namespace t2t
