// How far rounded numbers, or what is computed from them, are from the exact ones.
#pragma once

#include <cmath>

#include "tensor.hpp"

namespace t2t {

/// The root of the mean squared error, as a share of the root of the numbers' mean square.
inline double relative_error(ConstMatrix got, ConstMatrix want) {
  double apart = 0, all = 0;
  for (std::size_t t = 0; t < want.rows; ++t)
    for (std::size_t c = 0; c < want.cols; ++c) {
      apart += std::pow(double(got.row(t)[c]) - want.row(t)[c], 2);
      all += std::pow(double(want.row(t)[c]), 2);
    }
  return std::sqrt(apart / all);
}

}  // namespace t2t
