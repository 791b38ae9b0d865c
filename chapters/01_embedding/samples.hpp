// Random ids, and the spread of a list of values. Only programs use it, no model does.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "program/print.hpp"
#include "random.hpp"

namespace t2t {

/// T random ids from the whole vocabulary, so that their rows lie far apart in the table.
inline std::vector<int> scattered_ids(std::size_t T, std::size_t V, Random& random) {
  std::vector<int> ids;  // [T]
  for (std::size_t t = 0; t < T; ++t) ids.push_back(int(random.next_uniform() * double(V)));
  return ids;
}

/// The root mean square: the standard deviation of values whose mean is 0.
inline double deviation(const std::vector<double>& values) {
  double squares = 0;
  for (const double value : values) squares += value * value;
  return std::sqrt(squares / double(values.size()));
}

/// One character for each of 24 bins from -limit to limit: how many values lie in it.
inline std::string histogram(const std::vector<double>& values, double limit) {
  Tensor<1> counts = xt::zeros<float>({24});
  for (const double value : values)
    counts(std::size_t(std::clamp((value / limit + 1) * 12, 0.0, 23.0))) += 1;
  return sparkline(row(counts));
}

}  // namespace t2t
