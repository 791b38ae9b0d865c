#include "03_rope/positions/positions.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "03_rope/rope.hpp"
#include "linalg.hpp"
#include "rows.hpp"
#include "shapes.hpp"

namespace t2t {

Tensor<2> sinusoidal_positions(std::size_t S, std::size_t C) {
  expect(C % 2 == 0 && C > 0, "C", "an even number above 0", C);

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

static void expect_fitting(ConstMatrix x, ConstMatrix table, std::size_t start) {
  expect_shape("table", table, {table.rows, x.cols});
  expect_positions(start, x.rows, table.rows);
}

Tensor<2> with_positions(const Tensor<2>& x, const Tensor<2>& table, std::size_t start) {
  expect_fitting(x, table, start);
  return x + xt::view(table, xt::range(start, start + x.shape(0)), xt::all());  // [T, C]
}

void add_positions(Matrix x, ConstMatrix table, std::size_t start) {
  expect_fitting(x, table, start);
  for_each_row(x.rows, x.cols, [&](std::size_t t) {
    const Row to = x.row(t);
    const ConstRow position = table.row(start + t);
    for (std::size_t c = 0; c < to.size(); ++c) to[c] += position[c];
  });
}

Tensor<1> alibi_slopes(std::size_t H) {
  expect(H > 0, "H", "at least 1", H);
  const std::size_t power = std::bit_floor(H);  // the largest power of two that is at most H

  Tensor<1> slopes = empty(H);  // [H]
  for (std::size_t h = 0; h < H; ++h) {
    // The heads past that power get the 1st, 3rd, 5th … slope for twice as many heads.
    const double exponent = h < power ? 8.0 * double(h + 1) / double(power)
                                      : 4.0 * double(2 * (h - power) + 1) / double(power);
    slopes(h) = float(std::exp2(-exponent));
  }
  return slopes;
}

/// The form of all biases: bias(h, t, distance) for a key at or before its query, −infinity for a
/// later one. Query t is at position S − T + t.
template <class Bias>
static Tensor<3> causal_biases(std::size_t H, std::size_t T, std::size_t S, Bias bias) {
  expect(T <= S, "T", fmt::format("at most S = {}", S), T);
  Tensor<3> biases = empty(H, T, S);  // [H, T, S]
  for (std::size_t h = 0; h < H; ++h)
    for (std::size_t t = 0; t < T; ++t) {
      const std::size_t position = S - T + t;
      for (std::size_t s = 0; s < S; ++s)
        biases(h, t, s) =
            s <= position ? bias(h, t, position - s) : -std::numeric_limits<float>::infinity();
    }
  return biases;
}

Tensor<3> alibi_biases(std::size_t H, std::size_t T, std::size_t S) {
  const Tensor<1> slopes = alibi_slopes(H);  // [H]
  return causal_biases(H, T, S, [&](std::size_t h, std::size_t, std::size_t distance) {
    return -slopes(h) * float(distance);
  });
}

std::size_t t5_bucket(std::size_t distance, std::size_t buckets, std::size_t max_distance) {
  const std::size_t exact = buckets / 2;
  expect(buckets >= 2, "buckets", "at least 2", buckets);
  expect(max_distance > exact, "max_distance", fmt::format("more than {}", exact), max_distance);
  if (distance < exact) return distance;

  // 0 at the first distance that shares a bucket, 1 at max_distance, logarithmic between them.
  const double share =
      std::log(double(distance) / double(exact)) / std::log(double(max_distance) / double(exact));
  return std::min(exact + std::size_t(share * double(buckets - exact)), buckets - 1);
}

Tensor<3> t5_biases(const Tensor<2>& table, std::size_t T, std::size_t S,
                    std::size_t max_distance) {
  const std::size_t buckets = table.shape(0), H = table.shape(1);
  std::vector<std::size_t> bucket;  // [S]: of each distance
  for (std::size_t distance = 0; distance < S; ++distance)
    bucket.push_back(t5_bucket(distance, buckets, max_distance));
  return causal_biases(H, T, S, [&](std::size_t h, std::size_t, std::size_t distance) {
    return table(bucket[distance], h);
  });
}

Tensor<3> shaw_biases(ConstMatrix q, ConstMatrix vectors, std::size_t S) {
  const std::size_t T = q.rows, D = vectors.cols;
  expect(D > 0, "D", "at least 1", D);
  expect(q.cols % D == 0, "columns of q", fmt::format("a multiple of D = {}", D), q.cols);
  expect(vectors.rows > 0, "rows of vectors", "at least 1", vectors.rows);
  const std::size_t H = q.cols / D, K = vectors.rows - 1;

  // K + 1 products for each query and head, whatever S is; then each score takes one of them.
  Tensor<3> products = empty(H, T, K + 1);  // [H, T, K + 1]
  for (std::size_t h = 0; h < H; ++h)
    matmul_bt(q.head(h, D), vectors, matrix(products, h), 1 / std::sqrt(float(D)));
  return causal_biases(H, T, S, [&](std::size_t h, std::size_t t, std::size_t distance) {
    return products(h, t, std::min(distance, K));
  });
}

}  // namespace t2t
