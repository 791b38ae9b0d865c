// --encoders reversal: an encoder-decoder learns to write words backwards. For main.cpp.
#pragma once

#include <cstddef>
#include <string>

namespace t2t {

/// Words of the text, most of them to learn and the others to try.
int show_reversal(const std::string& text, std::size_t seeds);

}  // namespace t2t
