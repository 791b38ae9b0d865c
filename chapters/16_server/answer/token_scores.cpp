#include "16_server/answer/token_scores.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "shapes.hpp"

namespace t2t {

TokenScores token_scores(ConstRow logits, int id, std::size_t likeliest) {
  expect(id >= 0 && std::size_t(id) < logits.size(), "the token",
         fmt::format("0 to {}", logits.size() - 1), id);
  const double highest = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(double(logit) - highest);
  if (!std::isfinite(sum))
    throw std::runtime_error("logits to score: wanted numbers below infinity, got others");
  const auto score = [&](int v) {
    return TokenScore{v, double(logits[std::size_t(v)]) - highest - std::log(sum)};
  };

  std::vector<int> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto last = order.begin() + std::ptrdiff_t(std::min(likeliest, order.size()));
  std::partial_sort(order.begin(), last, order.end(), [&](int a, int b) {
    const float of_a = logits[std::size_t(a)], of_b = logits[std::size_t(b)];
    return of_a != of_b ? of_a > of_b : a < b;
  });
  TokenScores scores{score(id), {}};
  std::transform(order.begin(), last, std::back_inserter(scores.likeliest), score);
  return scores;
}

}  // namespace t2t
