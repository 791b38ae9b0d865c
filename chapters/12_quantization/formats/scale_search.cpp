#include "12_quantization/formats/scale_search.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "12_quantization/formats/quantize.hpp"
#include "12_quantization/packed/stored_scale.hpp"
#include "rows.hpp"
#include "shapes.hpp"

namespace t2t {

/// v rounded to an integer of the grid, as a float.
static float on_grid(float v, const Grid& grid) {
  return std::clamp(std::nearbyint(v), float(grid.lowest), float(grid.highest));
}

/// The fit of least E for the q that this one gives.
static Fit least_squares(ConstRow x, ConstRow weights, const Grid& grid, Fit fit) {
  const float per_step = inverse(fit.scale);
  double w = 0, wq = 0, wqq = 0, wx = 0, wxq = 0;  // Σ w, Σ w·q, …
#pragma omp simd reduction(+ : w, wq, wqq, wx, wxq)
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double q = on_grid((x[i] - fit.minimum) * per_step, grid);
    const double weight = weights[i], weighted = weight * x[i];
    w += weight, wq += weight * q, wqq += weight * q * q;
    wx += weighted, wxq += weighted * q;
  }
  // With a minimum: w·minimum + wq·scale = wx and wq·minimum + wqq·scale = wxq.
  const double determinant = w * wqq - wq * wq;
  if (grid.minimum != Grid::none && determinant > 1e-9 * w * wqq) {
    const double minimum = (wx * wqq - wxq * wq) / determinant;
    if (grid.minimum == Grid::any || minimum <= 0)
      return {float((w * wxq - wq * wx) / determinant), float(minimum)};
  }
  if (grid.minimum == Grid::any || wqq == 0) return fit;
  return {float(wxq / wqq), 0};
}

static double error_of(ConstRow x, ConstRow weights, const Grid& grid, Fit fit) {
  const float per_step = inverse(fit.scale);
  double error = 0;
#pragma omp simd reduction(+ : error)
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float q = on_grid((x[i] - fit.minimum) * per_step, grid);
    const double apart = double(x[i]) - (fit.scale * q + fit.minimum);
    error += weights[i] * apart * apart;
  }
  return error;
}

Fit search_fit(ConstRow x, ConstRow weights, const Grid& grid) {
  const Fit range = range_fit(x, grid);
  Fit best = range;
  double least = error_of(x, weights, grid, best);
  const auto consider = [&](Fit fit) {
    for (int round = 0; round < 2; ++round) fit = least_squares(x, weights, grid, fit);
    const double error = error_of(x, weights, grid, fit);
    if (error < least) least = error, best = fit;
  };
  const float steps = float(grid.highest - grid.lowest);
  for (std::size_t i = 0; i < 16; ++i) {
    if (grid.minimum == Grid::none) {
      // Eight scales from 0.86 to 1.14 times that of the range, of either sign.
      const float factor = (i < 8 ? 1.0f : -1.0f) * (0.86f + 0.04f * float(i % 8));
      consider({range.scale * factor, 0});
    } else {
      // The range from 0.8 to 1.1 times as wide, around its middle.
      const float factor = 0.8f + 0.02f * float(i);
      consider({range.scale * factor, range.minimum + (1 - factor) / 2 * steps * range.scale});
    }
  }
  return best;
}

/// A block of 32 with this fit: q is nearest with the scale and the minimum as they are stored.
static void put_block(TensorType type, ConstRow x, Fit fit, const Grid& grid, std::uint8_t* to) {
  const bool has_minimum = grid.minimum != Grid::none;
  put_half(fit.scale, to);
  if (has_minimum) put_half(fit.minimum, to + 2);
  const float per_step = inverse(half_at(to)), minimum = has_minimum ? half_at(to + 2) : 0;
  const auto q = [&](std::size_t i) { return nearest((x[i] - minimum) * per_step, grid); };
  std::uint8_t* bytes = to + (has_minimum ? 4 : 2);
  if (type == TensorType::q8_0)
    for (std::size_t i = 0; i < 32; ++i) bytes[i] = std::uint8_t(std::int8_t(q(i)));
  else
    for (std::size_t i = 0; i < 16; ++i)
      bytes[i] = std::uint8_t((q(i) - grid.lowest) | (q(16 + i) - grid.lowest) << 4);
}

/// The fits of a block's parts, each by a search.
template <std::size_t parts>
static std::array<Fit, parts> search_fits(ConstRow x, ConstRow weights, const Grid& grid) {
  const std::size_t numbers = 256 / parts;
  std::array<Fit, parts> fits;
  for (std::size_t j = 0; j < parts; ++j)
    fits[j] =
        search_fit(x.subspan(j * numbers, numbers), weights.subspan(j * numbers, numbers), grid);
  return fits;
}

static void search_block(TensorType type, ConstRow x, ConstRow weights, std::uint8_t* to) {
  if (type == TensorType::q4_k) return put_q4_k(x, search_fits<8>(x, weights, grid_q4_k), to);
  if (type == TensorType::q6_k) return put_q6_k(x, search_fits<16>(x, weights, grid_q6_k), to);
  const Grid grid = type == TensorType::q8_0   ? Grid{-127, 127, Grid::none}
                    : type == TensorType::q4_0 ? Grid{-8, 7, Grid::none}
                                               : Grid{0, 15, Grid::any};
  put_block(type, x, search_fit(x, weights, grid), grid, to);
}

double weighted_error(TensorType type, const std::uint8_t* block, ConstRow x, ConstRow weights) {
  float back[256];
  dequantize_rows(type, {block, block_layout(type).bytes}, Matrix(back, 1, x.size(), x.size()));
  double error = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    error += weights[i] * (double(x[i]) - back[i]) * (double(x[i]) - back[i]);
  return error;
}

std::vector<std::uint8_t> search_rows(TensorType type, ConstMatrix x, ConstRow importance) {
  std::vector<std::uint8_t> bytes = quantize_rows(type, x);
  const std::vector<float> ones(importance.empty() ? x.cols : 0, 1.0f);
  const ConstRow weights = importance.empty() ? ConstRow(ones) : importance;
  expect_shape("importance", weights, {x.cols});
  for (const float weight : weights)
    expect(weight >= 0 && std::isfinite(weight), "importance", "numbers of at least 0", weight);

  const BlockLayout block = block_layout(type);
  const std::size_t blocks = x.cols / block.numbers;
  for_each_row(x.rows, 64 * x.cols, [&](std::size_t t) {
    std::array<std::uint8_t, 256> searched;
    for (std::size_t b = 0; b < blocks; ++b) {
      const ConstRow numbers = x.row(t).subspan(b * block.numbers, block.numbers);
      const ConstRow of_block = weights.subspan(b * block.numbers, block.numbers);
      std::uint8_t* plain = &bytes[(t * blocks + b) * block.bytes];
      search_block(type, numbers, of_block, searched.data());
      if (weighted_error(type, searched.data(), numbers, of_block) <
          weighted_error(type, plain, numbers, of_block))
        std::copy_n(searched.begin(), block.bytes, plain);
    }
  });
  return bytes;
}

}  // namespace t2t
