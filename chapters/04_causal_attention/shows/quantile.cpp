#include "04_causal_attention/shows/quantile.hpp"

#include <algorithm>
#include <vector>

namespace t2t {

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / double(values.size());
}

double quantile(std::vector<double> values, double share) {
  const auto at = values.begin() + long(share * double(values.size()));
  std::ranges::nth_element(values, at);
  return *at;
}

}  // namespace t2t
