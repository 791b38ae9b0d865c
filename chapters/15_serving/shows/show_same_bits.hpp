// One sequence, cut into calls in several ways: how many of its logits change. For main.cpp.
#pragma once

#include "program/program.hpp"

namespace t2t {

/// With a contiguous cache (chapter 08's) and with pages, with weights in floats and in Q8_0.
void show_same_bits(const Program& program);

}  // namespace t2t
