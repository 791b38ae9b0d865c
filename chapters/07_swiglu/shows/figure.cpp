#include "07_swiglu/shows/figure.hpp"

#include <fmt/format.h>

#include <vector>

#include "07_swiglu/shows/curves.hpp"
#include "figure/axes.hpp"

namespace t2t {

/// x from -5 to 3, and y from -0.4 to 3, as long as each other per unit.
static Axes unit_axes() {
  constexpr double low = -5, high = 3, below = -0.4, unit = 60, left = 34, top = 16;
  Axes axes = {{low, high, left, left + unit * (high - low)},
               {below, high, top + unit * (high - below), top},
               {},
               {},
               "x"};
  for (int x = int(low); x <= int(high); ++x)
    axes.x_ticks.push_back({double(x), fmt::format("{}", x)});
  for (int y = 0; y <= int(high); ++y) axes.y_ticks.push_back({double(y), fmt::format("{}", y)});
  return axes;
}

std::string figure_of_curves() {
  constexpr std::size_t count = 81;
  const Axes axes = unit_axes();
  Figure figure(axes.x.to + 16, axes.y.from + 44, "ReLU, GELU and SiLU from -5 to 3",
                "Far to the left all three are near 0, far to the right near x. ReLU has a corner "
                "at 0. GELU dips to about -0.17 and SiLU to about -0.28 before they rise.");
  draw_axes(figure, axes);
  figure.line({{axes.x.at(0), axes.y.from}, {axes.x.at(0), axes.y.to}});
  const Tensor<2> points =
      curve_points(float(axes.x.low), float(axes.x.high), count);  // [3, count]
  const char* names[] = {"ReLU: solid", "GELU: dashed", "SiLU: thick"};
  const LineStyle styles[] = {{Tone::third, 2}, {Tone::first, 2, true}, {Tone::second, 3}};
  for (std::size_t k = 0; k < curves.size(); ++k) {
    std::vector<Place> values;
    for (std::size_t i = 0; i < count; ++i)
      values.push_back(
          {axes.x.low + (axes.x.high - axes.x.low) * double(i) / (count - 1), points(k, i)});
    figure.line(places_of(axes, values), styles[k]);
    figure.text({axes.x.at(-4.5), axes.y.at(2.6) + 26.0 * double(k)}, names[k],
                {.tone = styles[k].tone, .size = 16});
  }
  return figure.svg();
}

}  // namespace t2t
