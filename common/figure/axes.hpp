// The axes of a figure with curves or bars.
#pragma once

#include <string>
#include <vector>

#include "figure/figure.hpp"

namespace t2t {

/// Where values lie on the page: `low` at pixel `from`, `high` at pixel `to`.
struct Scale {
  double low, high, from, to;
  bool logarithmic = false;  // equal factors are equally far apart; low and high are above 0

  double at(double value) const;
};

struct Tick {
  double value;
  std::string words;
};

struct Axes {
  Scale x, y;
  std::vector<Tick> x_ticks, y_ticks;
  std::string x_name = {}, y_name = {};  // what the values are
};

/// A line along the bottom, with the names of its ticks below it, and one at the left, with a grid
/// line at each of its ticks. x_name is at the bottom right, y_name above the left line.
void draw_axes(Figure& figure, const Axes& axes);

/// The places of values y over values x.
std::vector<Place> places_of(const Axes& axes, const std::vector<Place>& values);

}  // namespace t2t
