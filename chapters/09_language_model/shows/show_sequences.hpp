// Several sequences in one call: their rows one after the other, compared with the same sequences
// padded to one length. For main.cpp.
#pragma once

#include <vector>

#include "09_language_model/fast/forward.hpp"

namespace t2t {

void show_sequences(const Model& model, const std::vector<int>& ids);

}  // namespace t2t
