// What a mixture of experts holds, what a token uses of it, and how many experts a batch touches.
// For main.cpp.
#pragma once

namespace t2t {

void show_counts();

}  // namespace t2t
