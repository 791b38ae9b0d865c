// Latent attention in float64, as its formula says it, and how far floats may be from it.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "13_training/differences.hpp"
#include "23_latent/latent_attention.hpp"
#include "support/hashed_numbers.hpp"

namespace t2t {

/// Weights that need no file. The gains are near 1, and different.
inline LatentWeights made_latent_weights(const LatentSettings& s) {
  const auto matrix = [](std::uint32_t seed, std::size_t out, std::size_t in) {
    return numbers(seed, 4 / std::sqrt(float(std::max<std::size_t>(in, 1))), 0, out, in);
  };
  const std::size_t width = s.H * (s.N + s.R);
  LatentWeights w;
  w.w_qa = s.Q > 0 ? matrix(11, s.Q, s.C) : empty(0, 0);
  w.q_gain = numbers(12, 0.5f, 1, s.Q);
  w.w_qb = matrix(13, width, s.Q > 0 ? s.Q : s.C);
  w.w_kva = matrix(14, s.K + s.R, s.C);
  w.kv_gain = numbers(15, 0.5f, 1, s.K);
  w.w_kvb = matrix(16, s.H * (s.N + s.Dv), s.K);
  w.w_o = matrix(17, s.C, s.H * s.Dv);
  return w;
}

/// The same layer's tensors in float64.
struct LatentDoubles {
  Doubles x, w_qa, q_gain, w_qb, w_kva, kv_gain, w_kvb, w_o;

  LatentDoubles(const Tensor<2>& x, const LatentWeights& w)
      : x(x),
        w_qa(w.w_qa),
        q_gain(w.q_gain),
        w_qb(w.w_qb),
        w_kva(w.w_kva),
        kv_gain(w.kv_gain),
        w_kvb(w.w_kvb),
        w_o(w.w_o) {}
};

/// x·wᵀ.
inline Doubles times(const Doubles& x, const Doubles& w) {
  Doubles y(x.rows, w.rows);
  for (std::size_t t = 0; t < x.rows; ++t)
    for (std::size_t o = 0; o < w.rows; ++o)
      for (std::size_t c = 0; c < x.cols; ++c) y(t, o) += x(t, c) * w(o, c);
  return y;
}

/// RMSNorm of the first `cols` elements of each row.
inline void norm_part(Doubles& x, std::size_t cols, const Doubles& gain, double eps) {
  for (std::size_t t = 0; t < x.rows; ++t) {
    double squares = 0;
    for (std::size_t c = 0; c < cols; ++c) squares += x(t, c) * x(t, c);
    for (std::size_t c = 0; c < cols; ++c)
      x(t, c) *= gain(0, c) / std::sqrt(squares / double(cols) + eps);
  }
}

/// Rotates R elements from column `from` on, neighbours as pairs, row t at position t.
inline void rotate_part(Doubles& x, std::size_t from, std::size_t R) {
  for (std::size_t t = 0; t < x.rows; ++t)
    for (std::size_t i = 0; i < R / 2; ++i) {
      const double angle = double(t) * std::pow(10000.0, -2.0 * double(i) / double(R));
      const double a = x(t, from + 2 * i), b = x(t, from + 2 * i + 1);
      x(t, from + 2 * i) = a * std::cos(angle) - b * std::sin(angle);
      x(t, from + 2 * i + 1) = a * std::sin(angle) + b * std::cos(angle);
    }
}

/// The heads' outputs, and how far a float may be from them. Each form sums products of three
/// factors, which go through at most K + N + R + 8 roundings: a score is off by that many units of
/// the sum of their magnitudes. A weight is off by the sum of two scores' errors, relatively, and
/// by the S + 8 roundings of softmax. An output is a sum over positions and latents with such
/// weights. The result is the largest bound of any element.
struct LatentReference {
  Doubles heads;  // [T, H·Dv]
  double bound = 0;
};
inline LatentReference attend_in_double(const Doubles& q, const Doubles& rows, const Doubles& w_kvb,
                                        const LatentSettings& s) {
  constexpr double u = 0x1p-24;
  const std::size_t T = q.rows, S = rows.rows;
  const double f = double(s.m) * s.m / std::sqrt(double(s.N + s.R));
  LatentReference result{Doubles(T, s.H * s.Dv)};
  for (std::size_t h = 0; h < s.H; ++h) {
    const std::size_t of_u = h * (s.N + s.Dv), of_y = of_u + s.N, of_q = h * (s.N + s.R);
    for (std::size_t t = 0; t < T; ++t) {
      const std::size_t seen = S - T + t + 1;
      std::vector<double> weights(seen);
      double highest = -INFINITY, magnitude = 0, sum = 0;
      for (std::size_t i = 0; i < seen; ++i) {
        double score = 0, sizes = 0;
        const auto add = [&](double product) { score += product, sizes += std::abs(product); };
        for (std::size_t n = 0; n < s.N; ++n)
          for (std::size_t k = 0; k < s.K; ++k)
            add(q(t, of_q + n) * w_kvb(of_u + n, k) * rows(i, k));
        for (std::size_t r = 0; r < s.R; ++r) add(q(t, of_q + s.N + r) * rows(i, s.K + r));
        weights[i] = f * score;
        highest = std::max(highest, weights[i]);
        magnitude = std::max(magnitude, f * sizes);
      }
      for (double& weight : weights) sum += weight = std::exp(weight - highest);
      const double of_weights = 2 * double(s.K + s.N + s.R + 8) * u * magnitude + double(S + 8) * u;
      for (std::size_t v = 0; v < s.Dv; ++v) {
        double out = 0, sizes = 0;
        for (std::size_t i = 0; i < seen; ++i)
          for (std::size_t k = 0; k < s.K; ++k) {
            const double term = weights[i] / sum * w_kvb(of_y + v, k) * rows(i, k);
            out += term, sizes += std::abs(term);
          }
        result.heads(t, h * s.Dv + v) = out;
        result.bound = std::max(result.bound, (of_weights + double(S + s.K + 2) * u) * sizes);
      }
    }
  }
  return result;
}

/// The whole layer.
inline Doubles latent_layer_in_double(const LatentDoubles& w, const LatentSettings& s) {
  Doubles a = w.x;
  if (s.Q > 0) a = times(w.x, w.w_qa), norm_part(a, s.Q, w.q_gain, s.eps);
  Doubles q = times(a, w.w_qb), rows = times(w.x, w.w_kva);
  norm_part(rows, s.K, w.kv_gain, s.eps);
  for (std::size_t h = 0; h < s.H; ++h) rotate_part(q, h * (s.N + s.R) + s.N, s.R);
  rotate_part(rows, s.K, s.R);
  return times(attend_in_double(q, rows, w.w_kvb, s).heads, w.w_o);
}

/// Float64 as a tensor.
inline Tensor<2> floats_of(const Doubles& x) {
  Tensor<2> floats = empty(x.rows, x.cols);
  std::ranges::transform(x.numbers, floats.data(), [](double number) { return float(number); });
  return floats;
}
inline double largest_of(const Tensor<2>& x) {
  double largest = 0;
  for (const float number : x) largest = std::max(largest, double(std::abs(number)));
  return largest;
}

/// Sizes that are all different, with and without a rank of the queries and a factor of YaRN's.
inline std::vector<LatentSettings> odd_latents() {
  return {{.C = 13, .H = 3, .N = 5, .R = 4, .Dv = 6, .K = 9, .Q = 8},
          {.C = 5, .H = 1, .N = 2, .R = 2, .Dv = 3, .K = 4, .Q = 3},
          {.C = 24, .H = 5, .N = 7, .R = 6, .Dv = 3, .K = 11, .Q = 0, .m = 1.25f},
          {.C = 16, .H = 2, .N = 17, .R = 2, .Dv = 1, .K = 40, .Q = 0}};
}

}  // namespace t2t
