// Shows a short run: a model for bytes reads the book, and begins to write like it.
#pragma once

#include <cstdint>
#include <string>

#include "13_training/trainer/loss_curve.hpp"

namespace t2t {

/// Returns the curve of its losses.
LossCurve show_run(const std::string& text, std::size_t steps, std::uint64_t seed);

}  // namespace t2t
