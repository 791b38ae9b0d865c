#include "figure/figure.hpp"

#include <fmt/format.h>

#include <cmath>

#include "shapes.hpp"

namespace t2t {

/// A pixel's coordinate with one decimal at most: "12", "12.5". The small summand keeps halves of a
/// tenth, which another processor may compute a little lower, from being rounded down there alone.
static std::string number(double x) {
  const double tenths = std::round(x * 10 + 1e-4);
  return fmt::format("{}", tenths / 10 + 0.0);  // + 0.0: no "-0"
}

/// Characters with a meaning in XML are written as entities, and control characters as spaces.
static std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else
      out += (unsigned char)c < 0x20 || c == 0x7f ? ' ' : c;
  }
  return out;
}

static const char* name(Tone tone) {
  static constexpr const char* names[] = {"ink", "quiet", "first", "second", "third", "paper"};
  return names[std::size_t(tone)];
}

// Against white and against #131416, each tone but paper has a contrast of 4.5 or more.
static constexpr const char* style = R"(<style>
svg{font-family:sans-serif;font-size:14px}
rect,text,.head{fill:currentColor}
path,circle{fill:none;stroke:currentColor}
.ink{color:#1f2328}.quiet{color:#646c75}.first{color:#005a9c}.second{color:#b04a00}.third{color:#00704f}.paper{color:#fff}
@media(prefers-color-scheme:dark){
.ink{color:#e6edf3}.quiet{color:#9198a1}.first{color:#5aa9e6}.second{color:#f5a04c}.third{color:#3fcf9f}.paper{color:#131416}
}
</style>
)";

Figure::Figure(double width, double height, std::string_view title, std::string_view description)
    : svg_(fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" "
                       "width=\"{0}\" height=\"{1}\" role=\"img\">\n"
                       "<title>{2}</title>\n<desc>{3}</desc>\n{4}",
                       number(width), number(height), escaped(title), escaped(description),
                       style)) {}

void Figure::box(const Box& box, Tone tone, double strength) {
  expect(strength >= 0 && strength <= 1, "strength", "a number from 0 to 1", strength);
  const double hundredths = std::round(strength * 100 + 1e-3);
  svg_ += fmt::format("<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"", name(tone),
                      number(box.x), number(box.y), number(box.width), number(box.height));
  if (hundredths < 100) svg_ += fmt::format(" opacity=\"{}\"", hundredths / 100);
  svg_ += "/>\n";
}

void Figure::path(const std::vector<Place>& places, const LineStyle& style, bool closed) {
  svg_ += fmt::format("<path class=\"{}\"", name(style.tone));
  if (style.width != 1) svg_ += fmt::format(" stroke-width=\"{}\"", style.width);
  if (style.dashed) svg_ += " stroke-dasharray=\"5 4\"";
  svg_ += " d=\"";
  for (std::size_t i = 0; i < places.size(); ++i)
    svg_ += fmt::format("{}{} {}", i == 0 ? "M" : " ", number(places[i].x), number(places[i].y));
  svg_ += closed ? "Z\"/>\n" : "\"/>\n";
}

void Figure::frame(const Box& box, const LineStyle& style) {
  const double right = box.x + box.width, bottom = box.y + box.height;
  path({{box.x, box.y}, {right, box.y}, {right, bottom}, {box.x, bottom}}, style, true);
}

void Figure::circle(Place middle, double radius, const LineStyle& style) {
  svg_ += fmt::format("<circle class=\"{}\" cx=\"{}\" cy=\"{}\" r=\"{}\"", name(style.tone),
                      number(middle.x), number(middle.y), number(radius));
  if (style.width != 1) svg_ += fmt::format(" stroke-width=\"{}\"", style.width);
  svg_ += "/>\n";
}

void Figure::line(const std::vector<Place>& places, const LineStyle& style) {
  path(places, style, false);
}

void Figure::arrow(const std::vector<Place>& places, const LineStyle& style) {
  expect(places.size() >= 2, "places of an arrow", "at least 2", places.size());
  path(places, style, false);
  // The head: a triangle of 8 pixels, along the last part of the line.
  const Place to = places.back(), from = places[places.size() - 2];
  const double length = std::hypot(to.x - from.x, to.y - from.y);
  const double x = 8 * (to.x - from.x) / length, y = 8 * (to.y - from.y) / length;
  svg_ += fmt::format("<polygon class=\"head {}\" points=\"{},{} {},{} {},{}\"/>\n",
                      name(style.tone), number(to.x), number(to.y), number(to.x - x - y / 2),
                      number(to.y - y + x / 2), number(to.x - x + y / 2), number(to.y - y - x / 2));
}

void Figure::text(Place at, std::string_view words, const TextStyle& style) {
  svg_ += fmt::format("<text class=\"{}\" x=\"{}\" y=\"{}\"", name(style.tone), number(at.x),
                      number(at.y));
  if (style.anchor != Anchor::start)
    svg_ += fmt::format(" text-anchor=\"{}\"", style.anchor == Anchor::end ? "end" : "middle");
  if (style.size != 14) svg_ += fmt::format(" font-size=\"{}\"", number(style.size));
  if (style.bold) svg_ += " font-weight=\"bold\"";
  svg_ += fmt::format(">{}</text>\n", escaped(words));
}

void Figure::label(const Box& box, std::string_view words, TextStyle style) {
  style.anchor = Anchor::middle;
  text({box.middle().x, box.middle().y + 0.36 * style.size}, words, style);
}

}  // namespace t2t
