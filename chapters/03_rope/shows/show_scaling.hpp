// The program's part on longer texts: four scalings, and what each does to the pairs.
#pragma once

#include "random.hpp"

namespace t2t {

void show_beyond(std::size_t D, float theta, Random& random);

}  // namespace t2t
