#include "19_ranks/collectives/values.hpp"

#include <algorithm>
#include <stdexcept>

#include "19_ranks/collectives/tree.hpp"

namespace t2t {

std::vector<double> sum_of_values(const Communicator& ranks, const std::vector<double>& values) {
  std::vector<float> halves;
  for (const double value : values) {
    halves.push_back(float(value));
    halves.push_back(float(value - double(float(value))));
  }
  tree_all_reduce(ranks, halves);
  std::vector<double> sums;
  for (std::size_t i = 0; i < halves.size(); i += 2)
    sums.push_back(double(halves[i]) + double(halves[i + 1]));
  return sums;
}

std::vector<double> value_of_each(const Communicator& ranks, double value) {
  std::vector<double> values(ranks.size);
  values[ranks.rank] = value;
  return sum_of_values(ranks, values);
}

double largest_value(const Communicator& ranks, double value) {
  return std::ranges::max(value_of_each(ranks, value));
}

void expect_on_all(const Communicator& ranks, bool holds, const std::string& words) {
  if (largest_value(ranks, holds ? 0 : 1) > 0) throw std::runtime_error(words);
}

void wait_for_all(const Communicator& ranks) { tree_all_reduce(ranks, {}); }

}  // namespace t2t
