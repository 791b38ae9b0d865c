#include "03_rope/shows/figure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "figure/figure.hpp"

namespace t2t {

/// A hand that points to the right at position 0 and rotates counterclockwise.
static void draw_hand(Figure& figure, Place middle, double radius, double angle) {
  figure.circle(middle, radius);
  figure.arrow({middle, {middle.x + radius * std::cos(angle), middle.y - radius * std::sin(angle)}},
               {Tone::first, 2});
}

std::string figure_of_angles(const Frequencies& frequencies) {
  constexpr std::array positions = {0, 1, 2, 3, 4, 5, 10, 100, 1000, 10000};
  constexpr double left = 132, top = 62, step = 40, radius = 16;
  const std::size_t pairs = frequencies.size(), shown = std::min<std::size_t>(6, pairs);
  const auto pair = [&](std::size_t row) {
    return shown > 1 ? row * (pairs - 1) / (shown - 1) : 0;
  };
  const auto degrees = [&](std::size_t i) {
    return fmt::format("{:.3f}°", frequencies[i] * 180 / std::numbers::pi);
  };
  std::string told =
      "Each row is a pair, and each column a position from 0 to 10,000. Per position";
  for (std::size_t r = 0; r < shown; ++r)
    told += fmt::format(", pair {} rotates by {}", pair(r), degrees(pair(r)));
  Figure figure(left + step * double(positions.size()) + 6, top + step * double(shown) + 4,
                "The angles of some pairs at ten positions",
                told +
                    ". The hands of fast pairs point in another direction at each position, while "
                    "those of slow pairs move noticeably only over thousands of positions.");
  figure.text({left - 12, 42}, "per position", {Tone::quiet, Anchor::end, 13});
  figure.text({left + 8, 18}, "position", {.size = 13});
  for (std::size_t c = 0; c < positions.size(); ++c)
    figure.text({left + step * (double(c) + 0.5), 42}, fmt::format("{}", positions[c]),
                {.anchor = Anchor::middle, .size = 13});
  for (std::size_t r = 0; r < shown; ++r) {
    const std::size_t i = pair(r);
    const double y = top + step * (double(r) + 0.5);
    figure.text({8, y + 5}, fmt::format("pair {}", i));
    figure.text({left - 12, y + 5}, degrees(i), {Tone::quiet, Anchor::end, 13});
    for (std::size_t c = 0; c < positions.size(); ++c)
      draw_hand(figure, {left + step * (double(c) + 0.5), y}, radius,
                positions[c] * frequencies[i]);
  }
  return figure.svg();
}

}  // namespace t2t
