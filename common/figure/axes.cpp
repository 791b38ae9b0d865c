#include "figure/axes.hpp"

#include <cmath>

namespace t2t {

double Scale::at(double value) const {
  const auto along = [&](double v) { return logarithmic ? std::log(v) : v; };
  return from + (to - from) * (along(value) - along(low)) / (along(high) - along(low));
}

void draw_axes(Figure& figure, const Axes& axes) {
  const auto& [x, y, x_ticks, y_ticks, x_name, y_name] = axes;
  const TextStyle note = {.tone = Tone::quiet, .size = 13};
  for (const Tick& tick : y_ticks) {
    const double at = y.at(tick.value);
    figure.line({{x.from, at}, {x.to, at}}, {.width = 0.3});
    figure.text({x.from - 6, at + 4.5}, tick.words, {Tone::quiet, Anchor::end, 13});
  }
  figure.line({{x.from, y.to}, {x.from, y.from}, {x.to, y.from}});
  for (const Tick& tick : x_ticks) {
    const double at = x.at(tick.value);
    figure.line({{at, y.from}, {at, y.from + 4}});
    figure.text({at, y.from + 18}, tick.words, {Tone::quiet, Anchor::middle, 13});
  }
  if (!x_name.empty()) figure.text({x.to, y.from + 36}, x_name, {Tone::quiet, Anchor::end, 13});
  if (!y_name.empty()) figure.text({x.from, y.to - 10}, y_name, note);
}

std::vector<Place> places_of(const Axes& axes, const std::vector<Place>& values) {
  std::vector<Place> places;
  for (const Place& value : values) places.push_back({axes.x.at(value.x), axes.y.at(value.y)});
  return places;
}

}  // namespace t2t
