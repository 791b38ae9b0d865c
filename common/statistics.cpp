#include "statistics.hpp"

#include <algorithm>
#include <cmath>

namespace t2t {

double root_mean_square(ConstRow x) {
  double sum = 0;
  for (const float value : x) sum += double(value) * value;
  return std::sqrt(sum / double(x.size()));
}

double root_mean_square(const Tensor<2>& x) {
  return root_mean_square(ConstRow(x.data(), x.size()));
}

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
