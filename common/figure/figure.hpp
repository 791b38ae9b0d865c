// A figure for a page, written as SVG: rectangles, lines, arrows and text.
//
// A tone says what a mark is for, and words in the figure say it as well. Each tone has a colour
// for light pages and one for dark pages, which colour-blind readers can tell from the others
// (after Okabe and Ito 2008, "Color Universal Design"); the background is the page's own. The title
// and the description serve readers who cannot see the figure, and a page repeats both. Coordinates
// are pixels from the top left corner, rounded to tenths, so that every processor writes the same
// file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace t2t {

/// ink: words and outlines. quiet: axes, grids and notes. first, second, third: what a figure
/// compares. paper: words on a filled box.
enum class Tone { ink, quiet, first, second, third, paper };

struct Place {
  double x, y;
};
struct Box {
  double x, y, width, height;

  Place middle() const { return {x + width / 2, y + height / 2}; }
};

enum class Anchor { start, middle, end };

struct TextStyle {
  Tone tone = Tone::ink;
  Anchor anchor = Anchor::start;  // which part of the words is at the place
  double size = 14;               // pixels
  bool bold = false;
};

struct LineStyle {
  Tone tone = Tone::quiet;
  double width = 1;  // pixels
  bool dashed = false;
};

class Figure {
 public:
  Figure(double width, double height, std::string_view title, std::string_view description);

  /// A filled rectangle. strength, from 0 to 1, says how much of the tone covers the page; other
  /// values throw std::invalid_argument, NaN included.
  void box(const Box& box, Tone tone, double strength = 1);
  /// The outline of a rectangle.
  void frame(const Box& box, const LineStyle& style = {});
  /// The outline of a circle.
  void circle(Place middle, double radius, const LineStyle& style = {});
  /// Through all of the places, in their order.
  void line(const std::vector<Place>& places, const LineStyle& style = {});
  /// The same with a head at the last place.
  void arrow(const std::vector<Place>& places, const LineStyle& style = {});
  /// Words whose baseline is at the place. They may hold any characters.
  void text(Place at, std::string_view words, const TextStyle& style = {});
  /// Words in the middle of a box.
  void label(const Box& box, std::string_view words, TextStyle style = {});

  /// The whole file.
  std::string svg() const { return svg_ + "</svg>\n"; }

 private:
  void path(const std::vector<Place>& places, const LineStyle& style, bool closed);

  std::string svg_;
};

}  // namespace t2t
