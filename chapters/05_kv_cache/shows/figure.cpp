#include "05_kv_cache/shows/figure.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "figure/figure.hpp"
#include "program/print.hpp"

namespace t2t {

static constexpr double left = 64, side = 12;

static std::size_t rows_in(const std::vector<Step>& steps) {
  std::size_t rows = 0;
  for (const Step& step : steps) rows += step.kv_rows;
  return rows;
}

/// A step with T tokens in the text: the rows that it reads from the cache, then those that it
/// computes.
static void draw_step(Figure& figure, double y, std::size_t T, std::size_t computed) {
  const double from = left + side * double(T - computed);
  if (computed < T) figure.box({left, y, from - left, side - 1}, Tone::first, 0.35);
  figure.box({from, y, side * double(computed), side - 1}, Tone::second);
}

/// The text above its steps, which begin at y.
static void draw_panel(Figure& figure, double y, const std::string& title, const std::string& text,
                       const std::vector<Step>& steps) {
  const std::size_t prompt = text.size() - steps.size();
  figure.text({left, y - 28}, title, {.bold = true});
  for (std::size_t t = 0; t + 1 < text.size(); ++t)
    figure.text({left + side * (double(t) + 0.5), y - 6}, visible(text.substr(t, 1)),
                {.anchor = Anchor::middle, .size = 12});
  for (std::size_t i = 0; i < steps.size(); ++i) {
    figure.text({left - 6, y + side * double(i) + 10}, fmt::format("step {}", i + 1),
                {Tone::quiet, Anchor::end, 12});
    draw_step(figure, y + side * double(i), prompt + i, steps[i].kv_rows);
  }
  // A gap between tokens.
  const double bottom = y + side * double(steps.size());
  for (std::size_t t = 1; t + 1 < text.size(); ++t) {
    const double x = left + side * double(t);
    figure.line({{x, y}, {x, bottom}}, {Tone::paper});
  }
}

static void draw_key(Figure& figure, double y) {
  figure.box({left, y - 11, side, side}, Tone::second);
  figure.text({left + 20, y}, "computed in this step", {.size = 13});
  figure.box({left + 190, y - 11, side, side}, Tone::first, 0.35);
  figure.text({left + 210, y}, "kept in the cache", {.size = 13});
}

std::string figure_of_steps(const std::string& text, const std::vector<Step>& without,
                            const std::vector<Step>& with) {
  const double high = side * double(with.size()), top = 50;
  Figure figure(
      std::max(500.0, left + side * double(text.size()) + 8), 2 * high + top + 100,
      "What each step computes, without a cache and with one",
      fmt::format("A prompt of {} tokens is continued by {} tokens; a column is one token's key "
                  "and value. Without a cache, each step computes all columns so far, {} in all. "
                  "With the cache, the first step computes the prompt's, and each later step "
                  "computes one and reads the others from the cache: {} in all.",
                  text.size() - with.size(), with.size(), rows_in(without), rows_in(with)));
  draw_panel(figure, top, fmt::format("without a cache: {} K/V rows", rows_in(without)), text,
             without);
  draw_panel(figure, top + high + 60, fmt::format("with the cache: {} K/V rows", rows_in(with)),
             text, with);
  draw_key(figure, 2 * high + top + 86);
  return figure.svg();
}

}  // namespace t2t
