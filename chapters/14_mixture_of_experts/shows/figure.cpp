#include "14_mixture_of_experts/shows/figure.hpp"

#include <fmt/format.h>

#include <limits>

#include "14_mixture_of_experts/experts.hpp"
#include "figure/heat_cells.hpp"

namespace t2t {

static constexpr double left = 120, top = 48, side = 44, row_high = 14;

/// Each token's weight for each expert, [T, E]: -infinity for those that it does not use.
static Tensor<2> weights_of(const RoutedLetters& letters) {
  const auto& [text, E, k, routed] = letters;
  const float none = -std::numeric_limits<float>::infinity();
  Tensor<2> weights = none * xt::ones<float>({text.size(), E});
  for (std::size_t t = 0; t < text.size(); ++t)
    for (std::size_t j = 0; j < k; ++j)
      weights(t, routed.experts[t * k + j]) = routed.weights(t, j);
  return weights;
}

/// A bar for each expert, downwards, and a line at the load that is even.
static void draw_loads(Figure& figure, double y, const Assignment& assignment, std::size_t E,
                       std::size_t choices) {
  figure.text({left - 8, y + 14}, "load, in rows", {.anchor = Anchor::end});
  y += 22;
  for (std::size_t e = 0; e < E; ++e) {
    const double x = left + side * double(e);
    figure.text({x + side / 2, y - 8}, fmt::format("{}", assignment.count(e)),
                {.anchor = Anchor::middle});
    figure.box({x, y, side - 1, row_high * double(assignment.count(e))}, Tone::second, 0.8);
  }
  const double even = y + row_high * double(choices) / double(E), right = left + side * double(E);
  figure.line({{left, even}, {right, even}}, {Tone::ink, 1.5, true});
  figure.text({right + 6, even + 5}, fmt::format("even load: {}", double(choices) / double(E)),
              {.size = 13});
}

std::string figure_of_loads(const RoutedLetters& letters) {
  const auto& [text, E, k, routed] = letters;
  Assignment assignment;
  assign(routed.experts, E, assignment);
  HeatCells cells = {{left, top}, side};
  std::string told;
  for (std::size_t t = 0; t < text.size(); ++t)
    cells.row_words.push_back(fmt::format("{} {}", t, text[t]));
  for (std::size_t e = 0; e < E; ++e) {
    cells.col_words.push_back(fmt::format("{}", e));
    told += fmt::format(" Expert {} has {} row{}.", e, assignment.count(e),
                        assignment.count(e) == 1 ? "" : "s");
  }
  const double bottom = top + side * double(text.size()) + 10;
  Figure figure(
      left + side * double(E) + 130, bottom + row_high * double(text.size()) + 36,
      fmt::format("The {} experts of each token, and the load of each expert", k),
      fmt::format("Each letter of \"{}\" uses {} of {} experts.{} An even load is {} rows.", text,
                  k, E, told, double(routed.experts.size()) / double(E)));
  figure.text({left, top - 30}, "experts; weights in percent", {.tone = Tone::quiet, .size = 13});
  draw_heat_cells(figure, weights_of(letters), cells);
  draw_loads(figure, bottom, assignment, E, routed.experts.size());
  return figure.svg();
}

}  // namespace t2t
