// The chapter's figure: the angle of each pair at some positions. For main.cpp.
#pragma once

#include <string>

#include "03_rope/rope.hpp"

namespace t2t {

/// Six pairs, the first and the last among them, as hands of clocks at positions from 0 to 10,000,
/// as SVG.
std::string figure_of_angles(const Frequencies& frequencies);

}  // namespace t2t
