// All of a model's tensors as rows of elements, for what treats every element alike: the optimizer,
// the gradient's norm, a checkpoint.
#pragma once

#include <string>
#include <vector>

#include "09_language_model/fast/model.hpp"
#include "tensor.hpp"

namespace t2t {

inline Row numbers_of(Tensor<1>& x) { return row(x); }
inline Row numbers_of(Weight& w) { return {w.floats().data(), w.size()}; }

struct ListedTensor {
  TensorInfo info;
  Row numbers;  // [rows·cols]
};
/// In the order of chapter 09's for_each_tensor, without the empty ones. The rows are views: the
/// tensors must outlive them. Throws std::invalid_argument for packed weights.
inline std::vector<ListedTensor> tensors_of(ModelWeights& weights, const Config& config) {
  std::vector<ListedTensor> list;
  for_each_tensor(weights, config, [&](const TensorInfo& info, auto& tensor) {
    if (tensor.size() > 0) list.push_back({info, numbers_of(tensor)});
  });
  return list;
}

}  // namespace t2t
