#include "17_fine_tuning/rewards/pass_at_k.hpp"

#include <fmt/format.h>

#include "shapes.hpp"

namespace t2t {

double pass_at_k(std::size_t m, std::size_t r, std::size_t k) {
  expect(r <= m, "right answers", fmt::format("at most {}, all answers", m), r);
  expect(k >= 1 && k <= m, "k", fmt::format("1 to {}, all answers", m), k);
  // The probability that the first answer is wrong, then the second of those left, and so on.
  double none_right = 1;
  for (std::size_t i = 0; i < k; ++i)
    none_right *= i < m - r ? double(m - r - i) / double(m - i) : 0;
  return 1 - none_right;
}

double mean_pass_at_k(std::size_t m, std::span<const std::size_t> right, std::size_t k) {
  expect(!right.empty(), "questions", "at least 1", 0);
  double sum = 0;
  for (const std::size_t r : right) sum += pass_at_k(m, r, k);
  return sum / double(right.size());
}

}  // namespace t2t
