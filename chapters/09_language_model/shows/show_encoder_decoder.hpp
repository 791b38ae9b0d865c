// An encoder-decoder with random weights: which token reaches which, and what it answers. For
// main.cpp.
#pragma once

#include <cstddef>

namespace t2t {

void show_encoder_decoder(std::size_t seed);

}  // namespace t2t
