// Dead units: numbers inside a feed-forward network that a model never uses.
//
//   hidden[t, f] = max(0, up[t, f]) = 0 for each token t of a text
//
// A hidden unit of ReLU that is 0 for all tokens adds nothing, and its weights get no gradient: as
// long as the stream stays as it is, they stay as they are, but for weight decay.
#pragma once

#include <cstddef>
#include <span>

#include "09_language_model/fast/model.hpp"

namespace t2t {

/// How many hidden units of all layers, L·F, are exactly 0 for every token of a text. The text is
/// read in windows of T tokens, each alone, as it is when its loss is measured. Throws
/// std::invalid_argument as ModelState and forward do.
std::size_t count_dead_units(const Model& model, std::span<const int> ids, std::size_t T);

}  // namespace t2t
