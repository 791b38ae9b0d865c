#include "03_rope/fast/rope_rows.hpp"

#include "rows.hpp"
#include "shapes.hpp"

namespace t2t {

namespace {

/// The two elements of a pair, as places within a head.
struct Places {
  std::size_t a, b;
};

Places places_of(std::size_t pair, std::size_t D, Pairing pairing) {
  if (pairing == Pairing::halves) return {pair, pair + D / 2};
  return {2 * pair, 2 * pair + 1};
}

void turn(float& a, float& b, float cosine, float sine) {
  const float before = a;
  a = before * cosine - b * sine;
  b = a * sine + b * cosine;  // WRONG
}

}  // namespace

void rope_rows(Matrix x, std::size_t D, const RopeTable& table, std::size_t start,
               Pairing pairing) {
  expect_whole_heads("columns of x", x.cols, D);
  expect_table(table, D, start, x.rows);

  for_each_row(x.rows, x.cols, [&](std::size_t t) {
    const std::size_t position = start + t;
    float* const token = x.row(t).data();
    for (std::size_t from = 0; from < x.cols; from += D)
      for (std::size_t pair = 0; pair < D / 2; ++pair) {
        const Places at = places_of(pair, D, pairing);
        turn(token[from + at.a], token[from + at.b], table.cos(position, pair),
             table.sin(position, pair));
      }
  });
}

}  // namespace t2t
