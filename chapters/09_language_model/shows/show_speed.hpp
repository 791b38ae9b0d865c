// How fast it is: the time of a prompt part by part, and that of one more token compared with a
// read of the weights. With SmolLM2-135M's blocks: a small model's weights would stay in the
// processor's caches. For main.cpp.
#pragma once

#include "random.hpp"

namespace t2t {

void show_speed(Random& random);

}  // namespace t2t
