// Made-up tokens, and how a list of numbers spreads. For the programs' output: no model needs it.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "print.hpp"
#include "random.hpp"

namespace t2t {

/// Ids all over a vocabulary, so that each row of its table comes from somewhere else.
inline std::vector<int> scattered_ids(std::size_t T, std::size_t V, Random& random) {
  std::vector<int> ids;  // [T]
  for (std::size_t t = 0; t < T; ++t) ids.push_back(int(random.next_uniform() * double(V)));
  return ids;
}

/// Root mean square: the deviation from 0.
inline double deviation(const std::vector<double>& values) {
  double squares = 0;
  for (const double value : values) squares += value * value;
  return std::sqrt(squares / double(values.size()));
}

/// One character a bin: how many values lie in each of 24 bins from -limit to limit.
inline std::string histogram(const std::vector<double>& values, double limit) {
  Tensor<1> counts = xt::zeros<float>({24});
  for (const double value : values)
    counts(std::size_t(std::clamp((value / limit + 1) * 12, 0.0, 23.0))) += 1;
  return sparkline(row(counts));
}

}  // namespace t2t
