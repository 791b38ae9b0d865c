// A model's weights with all matrices in another form: quantized, or with batch-invariant products.
#pragma once

#include <type_traits>

#include "09_language_model/fast/model.hpp"

namespace t2t {

/// Each matrix becomes form(floats), a Weight of the same shape; gains and biases stay. Throws
/// std::invalid_argument unless all matrices are floats, and as form does.
template <class Form>
ModelWeights matrices_as(Form form, ModelWeights weights, const Config& config) {
  for_each_tensor(weights, config, [&](const TensorInfo&, auto& tensor) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(tensor)>, Weight>)
      if (tensor.size() > 0) tensor = form(tensor.floats());
  });
  return weights;
}

}  // namespace t2t
