// --encoders which-chapter: a model with and without the causal mask says from which chapter of the
// book a window of bytes comes. For main.cpp.
#pragma once

#include <cstddef>

namespace t2t {

int show_which_chapter(std::size_t seeds);

}  // namespace t2t
