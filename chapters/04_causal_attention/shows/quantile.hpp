// What the shows say of many values: their mean, and the value below which a share of them lies.
#pragma once

#include <algorithm>
#include <vector>

namespace t2t {

inline double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / double(values.size());
}

/// The share is in [0, 1): 0.5 gives the median, of an even number of values the upper one of the
/// middle two. There must be at least one value.
inline double quantile(std::vector<double> values, double share) {
  const auto at = values.begin() + long(share * double(values.size()));
  std::ranges::nth_element(values, at);
  return *at;
}

}  // namespace t2t
