// Sums over all tokens, one for each column: the gradients of gains, biases and tables.
#pragma once

#include <algorithm>
#include <cstddef>

#include "rows.hpp"
#include "tensor.hpp"

namespace t2t {

/// Calls add(t, from, sums) for each row t and each stretch of columns from `from` on, which adds
/// row t's elements of these columns to sums. A thread sums whole columns, so that each sum has one
/// order of its terms, however many threads there are: a run can be repeated bit by bit.
template <class Add>
void add_column_sums(std::size_t T, Row sums, Add add) {
  constexpr std::size_t stretch = 64;  // columns: four cache lines
  const std::size_t stretches = (sums.size() + stretch - 1) / stretch;
  for_each_task(stretches, T * stretch, [&](std::size_t i, std::size_t) {
    const std::size_t from = i * stretch, count = std::min(stretch, sums.size() - from);
    for (std::size_t t = 0; t < T; ++t) add(t, from, sums.subspan(from, count));
  });
}

}  // namespace t2t
