// A rank's part of a mixture's weights: its own experts, and everything else. Other ranks' experts
// keep their shapes, since a model has E of them, but no elements.
#pragma once

#include "09_language_model/fast/model.hpp"

namespace t2t {

/// Whether a tensor belongs to an expert of another rank.
bool is_elsewhere(const TensorInfo& info, const Config& config, std::size_t ranks,
                  std::size_t rank);

/// The weights of rank `rank`. To multiply with an expert of another rank throws std::logic_error.
/// Throws std::invalid_argument for a model with a layer without experts, and as own_experts does.
ModelWeights without_others_experts(ModelWeights weights, const Config& config, std::size_t ranks,
                                    std::size_t rank);

}  // namespace t2t
