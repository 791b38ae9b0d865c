// How far rounded values, or results computed from them, are from the exact ones.
#pragma once

#include <cmath>

#include "tensor.hpp"

namespace t2t {

/// Sums of squares of values and of their errors, for matrices that come piece by piece.
struct SquaredErrors {
  double numbers = 0, errors = 0;

  void add(ConstMatrix got, ConstMatrix want) {
    for (std::size_t t = 0; t < want.rows; ++t) {
      const ConstRow got_t = got.row(t), want_t = want.row(t);
      double all = 0, apart = 0;
#pragma omp simd reduction(+ : all, apart)
      for (std::size_t c = 0; c < want.cols; ++c) {
        const double error = double(got_t[c]) - want_t[c];
        all += double(want_t[c]) * want_t[c], apart += error * error;
      }
      numbers += all, errors += apart;
    }
  }
  /// The root of the mean squared error, as a share of the root of the values' mean square.
  double relative() const { return std::sqrt(errors / numbers); }
};

/// The same for two whole matrices.
inline double relative_error(ConstMatrix got, ConstMatrix want) {
  SquaredErrors squares;
  squares.add(got, want);
  return squares.relative();
}

}  // namespace t2t
