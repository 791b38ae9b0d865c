// A timeline as a drawing.
#pragma once

#include <string>

#include "21_pipeline/timeline/timeline.hpp"

namespace t2t {

/// A row per stage as SVG, time to the right: blue for forward and orange for backward passes, each
/// with its micro-batch's number.
std::string svg_of(const Timeline& timeline);

}  // namespace t2t
