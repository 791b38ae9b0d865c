// How many bytes each rung of the ladder of GPU kernels requests, by formula, compared with the
// card's ridge point. For main.cpp.
#pragma once

namespace t2t {

void show_ladder();

}  // namespace t2t
