// What a state remembers, and what it weighs beside a cache.
#pragma once

#include <cstddef>

namespace t2t {

void show_recall(std::size_t seed);
void show_rewritten(std::size_t seed);
void show_state_bytes();
void show_delta_operations();

}  // namespace t2t
