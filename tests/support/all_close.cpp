#include "support/all_close.hpp"

#include <doctest/doctest.h>
#include <fmt/ranges.h>

#include <cstdint>
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

/// A number from -0.5 to 0.5 for each index, and others for each factor.
static double hashed(std::size_t i, std::uint64_t factor) {
  const std::uint64_t h = (std::uint64_t(i) + 1) * factor;
  return double((h ^ (h >> 29)) * 0xBF58476D1CE4E5B9u >> 11) * 0x1p-53 - 0.5;
}

std::string differences(ConstMatrix got, ConstMatrix want, double bound) {
  if (!doctest::getContextOptions()->success) return "";
  const std::size_t n = got.rows * got.cols;
  std::size_t not_finite = 0;
  double worst = 0, size = 0, first = 0, second = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double far =
        double(got.row(i / got.cols)[i % got.cols]) - double(want.row(i / got.cols)[i % got.cols]);
    const double units = bound > 0 ? far / bound : far;
    if (!std::isfinite(units)) {
      ++not_finite;
      continue;
    }
    worst = std::max(worst, std::abs(units)), size += std::abs(units);
    first += units * hashed(i, 0x9E3779B97F4A7C15u),
        second += units * hashed(i, 0xC2B2AE3D27D4EB4Fu);
  }
  if (not_finite == 0 && (bound > 0 ? worst <= 1 : worst == 0)) return "~ close ~";
  return fmt::format("~ {} {} {:.7g} {:.7g} {:.7g} {:.7g} ~", n, not_finite, worst, size, first,
                     second);
}

}  // namespace t2t
