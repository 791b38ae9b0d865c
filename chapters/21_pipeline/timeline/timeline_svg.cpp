#include "21_pipeline/timeline/timeline_svg.hpp"

#include <fmt/format.h>

namespace t2t {

static constexpr double left = 70, width = 660, row_height = 28;

static std::string box_of(const Played& one, double start, double scale, double top) {
  const bool forward = one.operation.pass == Operation::Pass::forward;
  const double x = left + (one.begin - start) * scale, wide = (one.end - one.begin) * scale;
  std::string box = fmt::format(
      "<rect x=\"{:.1f}\" y=\"{:.0f}\" width=\"{:.1f}\" height=\"{:.0f}\" fill=\"{}\"/>\n", x,
      top + 2, wide, row_height - 4, forward ? "#4c78a8" : "#f58518");
  if (wide >= 12)
    box += fmt::format(
        "<text x=\"{:.1f}\" y=\"{:.0f}\" text-anchor=\"middle\" fill=\"#ffffff\">{}</text>\n",
        x + wide / 2, top + 19, one.operation.part);
  return box;
}

std::string svg_of(const Timeline& timeline) {
  const double start = first_begin(timeline), scale = width / length_of(timeline);
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\" font-family=\"sans-serif\" font-size=\"12\">\n"
      "<title>{2} stages of a pipeline in time</title>\n",
      left + width + 10, row_height * double(timeline.size()) + 10, timeline.size());
  for (std::size_t s = 0; s < timeline.size(); ++s) {
    const double top = 5 + row_height * double(s);
    svg +=
        fmt::format("<text x=\"8\" y=\"{:.0f}\" fill=\"#808080\">stage {}</text>\n", top + 19, s);
    for (const Played& one : timeline[s]) svg += box_of(one, start, scale, top);
  }
  return svg + "</svg>\n";
}

}  // namespace t2t
