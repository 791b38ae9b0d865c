#include "figure/heat_cells.hpp"

#include <fmt/format.h>

#include <limits>

#include "shapes.hpp"

namespace t2t {

static constexpr float infinity = std::numeric_limits<float>::infinity();

/// The share in percent, on its shade: where the shade is strong, in the page's own colour.
static void draw_cell(Figure& figure, const Box& box, double share) {
  figure.box(box, Tone::first, 0.06 + 0.94 * share);
  const Tone tone = share >= 0.68 ? Tone::paper : share < 0.005 ? Tone::quiet : Tone::ink;
  figure.label(box, fmt::format("{:.0f}", 100 * share), {.tone = tone, .size = 13});
}

void draw_heat_cells(Figure& figure, ConstMatrix shares, const HeatCells& cells) {
  const auto& [corner, side, row_words, col_words] = cells;
  for (std::size_t r = 0; r < shares.rows; ++r)
    for (const float share : shares.row(r))
      expect((share >= 0 && share <= 1) || share == -infinity, "a share", "a number from 0 to 1",
             share);
  for (std::size_t r = 0; r < row_words.size(); ++r)
    figure.text({corner.x - 8, corner.y + side * (double(r) + 0.5) + 5}, row_words[r],
                {.anchor = Anchor::end});
  for (std::size_t c = 0; c < col_words.size(); ++c)
    figure.text({corner.x + side * (double(c) + 0.5), corner.y - 8}, col_words[c],
                {.anchor = Anchor::middle});
  for (std::size_t r = 0; r < shares.rows; ++r)
    for (std::size_t c = 0; c < shares.cols; ++c) {
      const float share = shares.row(r)[c];
      if (share == -infinity) continue;
      const Box box = {corner.x + side * double(c), corner.y + side * double(r), side - 1,
                       side - 1};
      draw_cell(figure, box, share);
    }
}

}  // namespace t2t
