// Matrices whose singular values are known, and how far a float's roundings may take Newton–Schulz
// iteration from what it makes of them.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "13_training/differences.hpp"
#include "18_experiments/muon/newton_schulz.hpp"
#include "support/hashed_numbers.hpp"

namespace t2t {

inline double dot_of_rows(const Doubles& x, std::size_t i, std::size_t j) {
  double sum = 0;
  for (std::size_t c = 0; c < x.cols; ++c) sum += x(i, c) * x(j, c);
  return sum;
}

/// m rows of length 1, each at right angles to the others: hashed numbers, made so by Gram and
/// Schmidt's method, twice.
inline Doubles orthonormal_rows(std::uint32_t seed, std::size_t m, std::size_t n) {
  Doubles rows(numbers(seed, 2, 0, m, n));
  for (int pass = 0; pass < 2; ++pass)
    for (std::size_t i = 0; i < m; ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        const double along = dot_of_rows(rows, i, j);
        for (std::size_t c = 0; c < n; ++c) rows(i, c) -= along * rows(j, c);
      }
      const double length = std::sqrt(dot_of_rows(rows, i, i));
      for (std::size_t c = 0; c < n; ++c) rows(i, c) /= length;
    }
  return rows;
}

/// U·S·Vᵀ [m, n], the same U and V for each S, which holds min(m, n) values.
inline Tensor<2> of_singular_values(const std::vector<double>& s, std::size_t m, std::size_t n) {
  const Doubles u = orthonormal_rows(1, s.size(), m), v = orthonormal_rows(2, s.size(), n);
  Tensor<2> product = empty(m, n);
  for (std::size_t i = 0; i < m; ++i)
    for (std::size_t j = 0; j < n; ++j) {
      double sum = 0;
      for (std::size_t k = 0; k < s.size(); ++k) sum += u(k, i) * s[k] * v(k, j);
      product(i, j) = float(sum);
    }
  return product;
}

inline double after_all_steps(double s, const NewtonSchulz& iteration = {}) {
  for (std::size_t n = 0; n < iteration.steps; ++n) s = singular_value_after(iteration, s);
  return s;
}

/// By how much five steps multiply a small difference of a matrix, at most, if its singular values
/// lie between these: by the largest slope f′(s) or gain f(s)/s of each step.
inline double most_amplified(double least, double most) {
  const NewtonSchulz n;
  double all = 1;
  for (int i = 0; i <= 1000; ++i) {
    double s = least + (most - least) * i / 1000, product = 1;
    for (std::size_t step = 0; step < n.steps; ++step) {
      const double slope = n.a + 3 * n.b * s * s + 5 * n.c * s * s * s * s;
      const double next = singular_value_after(n, s);
      product *= std::max({1.0, std::abs(slope), next / s});
      s = next;
    }
    all = std::max(all, product);
  }
  return all;
}

/// How far newton_schulz may be off. Roundings are of either sign, and a product X·Y is off by
/// about 2^-24·‖X‖_F·‖Y‖. For m singular values of at most 1.203, a step's three products and sums
/// come to 18·√m of that. We allow for eight times as much, after which the other steps multiply
/// it.
inline double newton_schulz_bound(std::size_t m, double amplified) {
  return 5 * 8 * 18 * std::sqrt(double(m)) * 0x1p-24 * amplified;
}

}  // namespace t2t
