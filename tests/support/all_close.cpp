#include "support/all_close.hpp"

#include <fmt/ranges.h>

#include <vector>

namespace t2t {

std::string place_of(std::size_t i, std::span<const std::size_t> shape) {
  std::vector<std::size_t> at(shape.size());
  for (std::size_t n = shape.size(); n-- > 0; i /= shape[n]) at[n] = i % shape[n];
  return fmt::format("{}", at);
}

/// Up to `most` of `all` indices, with `at` among them: the first one and how many.
static std::pair<std::size_t, std::size_t> window(std::size_t at, std::size_t all,
                                                  std::size_t most) {
  const std::size_t count = std::min(all, most), before = std::min(at, count / 4);
  return {std::min(at - before, all - count), count};
}

std::string picture(ConstMatrix got, ConstMatrix want, double bound) {
  std::string text;
  if (got.rows * got.cols <= 24) {
    for (const auto& [name, x] : {std::pair("got ", got), std::pair("want", want)})
      for (std::size_t t = 0; t < x.rows; ++t)
        text += fmt::format("\n  {} {:9.4g}", t == 0 ? name : "    ", fmt::join(x.row(t), " "));
    return text;
  }
  // The map shows the first number that is too far off, and what lies before and after it.
  const auto close = [&](std::size_t t, std::size_t c) {
    return std::abs(double(got.row(t)[c]) - double(want.row(t)[c])) <= bound;
  };
  std::size_t bad = 0;
  while (bad + 1 < got.rows * got.cols && close(bad / got.cols, bad % got.cols)) ++bad;
  const auto [first_row, rows] = window(bad / got.cols, got.rows, 8);
  const auto [first_col, cols] = window(bad % got.cols, got.cols, 64);
  text = fmt::format(
      "\n  rows {} to {} of {}, columns {} to {} of {} (. close, x too far off, ? NaN):", first_row,
      first_row + rows - 1, got.rows, first_col, first_col + cols - 1, got.cols);
  for (std::size_t t = first_row; t < first_row + rows; ++t) {
    text += "\n  ";
    for (std::size_t c = first_col; c < first_col + cols; ++c)
      text += close(t, c) ? '.' : std::isnan(got.row(t)[c]) ? '?' : 'x';
  }
  return text;
}

}  // namespace t2t
