// The language model as a formula: embedding, L blocks, the final norm and the head, one after the
// other. forward.hpp computes the same with caches and scratch memory, and is tested against it.
#pragma once

#include <span>

#include "08_block/block.hpp"
#include "09_language_model/fast/model.hpp"

namespace t2t {

/// The logits [T, V] of a whole sequence, whose first token is at position 0. Throws
/// std::invalid_argument for no ids, for more than T_max and for an id outside [0, V), and as block
/// does.
Tensor<2> language_model(std::span<const int> ids,  // [T]
                         const Model& model,
                         const ReferenceNetwork& network = {});  // of every block

}  // namespace t2t
