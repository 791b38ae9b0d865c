// The course of a run: a point for each step, as a table (CSV), as a drawing (SVG) and in the
// terminal.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "13_training/trainer/trainer.hpp"

namespace t2t {

struct LossPoint {
  StepReport step;
  double held_out = std::numeric_limits<double>::quiet_NaN();  // where it was measured
};
using LossCurve = std::vector<LossPoint>;

/// A line for each step, with a header: "step,loss,held_out,gradient_norm,rate,update_ratio".
std::string csv_of(const LossCurve& curve);

/// Two curves over the steps as SVG: the training loss and the held-out loss. An empty curve gives
/// an empty string.
std::string svg_of(const LossCurve& curve);

/// The training loss as rows of characters, with the axis at the left: each column is the mean of
/// its steps. Short curves have a column for each step. Throws std::invalid_argument for an empty
/// curve, no columns and fewer than 2 rows.
std::string drawing_of(const LossCurve& curve, std::size_t columns, std::size_t rows);

}  // namespace t2t
