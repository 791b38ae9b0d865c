// Dead units: hidden units of a feed-forward network that a model never uses.
//
//   hidden[t, f] = max(0, up[t, f]) = 0 for each token t of a text
//
// A hidden unit of ReLU that is 0 for all tokens adds nothing, and its weights get no gradient: as
// long as the stream does not change, only weight decay changes them.
#pragma once

#include <cstddef>
#include <span>

#include "09_language_model/fast/model.hpp"

namespace t2t {

/// How many hidden units of all layers, L·F, are exactly 0 for every token of a text. The text is
/// read in separate windows of T tokens, as when its loss is measured. Throws std::invalid_argument
/// as ModelState and forward do.
std::size_t count_dead_units(const Model& model, std::span<const int> ids, std::size_t T);

}  // namespace t2t
