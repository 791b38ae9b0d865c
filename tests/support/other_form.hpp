// One form of a part computed through its other one, the formula through the rows or the rows
// through the formula: tests/wrong/forms has these functions. A mistake of one form is so made in
// the other too, or in the other alone. T2T_TURNED names the form that is computed through the
// other.
#pragma once

#include <algorithm>

#include "support/wrong_version.hpp"
#include "tensor.hpp"

namespace t2t {

/// Counts a call in which one form is computed through the other.
struct Turned {
  Turned() { ++turned_calls; }
  ~Turned() { --turned_calls; }
};

inline void fill(Matrix to, const Tensor<2>& from) {
  for (std::size_t t = 0; t < to.rows; ++t)
    std::ranges::copy(ConstMatrix(from).row(t), to.row(t).begin());
}

inline Tensor<1> copy_of(ConstRow x) {
  Tensor<1> copy = empty(x.size());
  std::ranges::copy(x, copy.begin());
  return copy;
}

}  // namespace t2t
