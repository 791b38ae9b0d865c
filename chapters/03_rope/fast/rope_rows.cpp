#include "03_rope/fast/rope_rows.hpp"

#include "rows.hpp"

namespace t2t {

static void rotate_neighbours_row(Row head, ConstRow cos, ConstRow sin) {
#pragma omp simd
  for (std::size_t i = 0; i < cos.size(); ++i) {
    const float a = head[2 * i], b = head[2 * i + 1];
    head[2 * i] = a * cos[i] - b * sin[i];
    head[2 * i + 1] = a * sin[i] + b * cos[i];
  }
}

static void rotate_halves_row(Row head, ConstRow cos, ConstRow sin) {
  const Row first = head.first(cos.size()), second = head.last(cos.size());
#pragma omp simd
  for (std::size_t i = 0; i < cos.size(); ++i) {
    const float a = first[i], b = second[i];
    first[i] = a * cos[i] - b * sin[i];
    second[i] = a * sin[i] + b * cos[i];
  }
}

void rope_rows(Matrix x, std::size_t D, const RopeTable& table, std::size_t start,
               Pairing pairing) {
  expect_whole_heads("columns of x", x.cols, D);
  expect_table(table, D, start, x.rows);
  const auto rotate = pairing == Pairing::neighbours ? rotate_neighbours_row : rotate_halves_row;

  for_each_row(x.rows, x.cols, [&](std::size_t t) {
    const ConstRow cos = row(table.cos, start + t), sin = row(table.sin, start + t);
    for (std::size_t h = 0; h < x.cols / D; ++h) rotate(x.row(t).subspan(h * D, D), cos, sin);
  });
}

}  // namespace t2t
