#include "03_rope/positions.hpp"

#include <fmt/core.h>

#include <bit>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "rows.hpp"
#include "shapes.hpp"

namespace t2t {

Tensor<2> sinusoidal_positions(std::size_t S, std::size_t C) {
  expect(C % 2 == 0 && C > 0, "C", "an even number above 0", double(C));

  Tensor<2> table = empty(S, C);  // [S, C]
  for_each_row(S, C, [&](std::size_t s) {
    for (std::size_t i = 0; i < C / 2; ++i) {
      const double angle = double(s) * std::pow(10000.0, -2.0 * double(i) / double(C));
      table(s, 2 * i) = float(std::sin(angle));
      table(s, 2 * i + 1) = float(std::cos(angle));
    }
  });
  return table;
}

Tensor<2> learned_positions(std::size_t S, std::size_t C, Random& random) {
  return random.normal<2>({S, C}, 0.01f);
}

static void expect_positions(ConstMatrix x, ConstMatrix table, std::size_t start) {
  expect_shape("table", table, {table.rows, x.cols});
  if (start > table.rows || x.rows > table.rows - start)
    throw std::invalid_argument(fmt::format("position {}: the table ends at {}", start + x.rows - 1,
                                            double(table.rows) - 1));
}

Tensor<2> with_positions(const Tensor<2>& x, const Tensor<2>& table, std::size_t start) {
  expect_positions(x, table, start);
  return x + xt::view(table, xt::range(start, start + x.shape(0)), xt::all());  // [T, C]
}

void add_positions(Matrix x, ConstMatrix table, std::size_t start) {
  expect_positions(x, table, start);
  for_each_row(x.rows, x.cols, [&](std::size_t t) {
    const Row to = x.row(t);
    const ConstRow position = table.row(start + t);
    for (std::size_t c = 0; c < to.size(); ++c) to[c] += position[c];
  });
}

Tensor<1> alibi_slopes(std::size_t H) {
  expect(H > 0, "H", "at least 1", double(H));
  const std::size_t power = std::bit_floor(H);  // the largest power of two that is at most H

  Tensor<1> slopes = empty(H);  // [H]
  for (std::size_t h = 0; h < H; ++h) {
    // Past that power, the slopes of twice as many heads fill the gaps: its 1st, 3rd, 5th …
    const double exponent = h < power ? 8.0 * double(h + 1) / double(power)
                                      : 4.0 * double(2 * (h - power) + 1) / double(power);
    slopes(h) = float(std::exp2(-exponent));
  }
  return slopes;
}

Tensor<3> alibi_biases(std::size_t H, std::size_t T, std::size_t S) {
  expect(T <= S, "T", fmt::format("at most S = {}", S), double(T));
  const Tensor<1> slopes = alibi_slopes(H);  // [H]

  Tensor<3> biases = empty(H, T, S);  // [H, T, S]
  for (std::size_t h = 0; h < H; ++h)
    for (std::size_t t = 0; t < T; ++t) {
      const std::size_t position = S - T + t;
      for (std::size_t s = 0; s < S; ++s)
        biases(h, t, s) = s <= position ? -slopes(h) * float(position - s)
                                        : -std::numeric_limits<float>::infinity();
    }
  return biases;
}

}  // namespace t2t
