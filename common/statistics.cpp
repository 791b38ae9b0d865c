#include "statistics.hpp"

#include <algorithm>
#include <cmath>

namespace t2t {

double root_mean_square(ConstRow x) {
  return root_mean_square(ConstMatrix{x.data(), 1, x.size(), x.size()});
}

double root_mean_square(ConstMatrix x) {
  double sum = 0;
  for (std::size_t t = 0; t < x.rows; ++t)
    for (const float value : x.row(t)) sum += double(value) * value;
  return std::sqrt(sum / double(x.rows * x.cols));
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
