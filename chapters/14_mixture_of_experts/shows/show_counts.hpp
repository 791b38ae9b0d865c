// What a mixture of experts holds, how much of it a token uses, and how many experts a batch
// touches. For main.cpp.
#pragma once

namespace t2t {

void show_counts();

}  // namespace t2t
