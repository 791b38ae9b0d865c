// The chapter's figure: the activations as curves. For main.cpp.
#pragma once

#include <string>

namespace t2t {

/// ReLU, GELU and SiLU from -5 to 3, as SVG.
std::string figure_of_curves();

}  // namespace t2t
