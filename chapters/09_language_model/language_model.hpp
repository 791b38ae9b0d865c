// The language model as a formula: embedding, L blocks, the final norm and the head, one after the
// other. What forward.hpp computes with caches and scratch memory is tested against it.
#pragma once

#include <span>

#include "09_language_model/model.hpp"

namespace t2t {

/// Logits [T, V] of a whole text at once, from position 0. Throws
/// std::invalid_argument for no ids, for an id outside [0, V) and for more than T_max.
Tensor<2> language_model(std::span<const int> ids,  // [T]
                         const Model& model);

}  // namespace t2t
