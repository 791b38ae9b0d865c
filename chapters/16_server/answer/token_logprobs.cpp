#include "16_server/answer/token_logprobs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "shapes.hpp"

namespace t2t {

TokenLogprobs token_logprobs(ConstRow logits, int id, std::size_t top_logprobs) {
  expect(id >= 0 && std::size_t(id) < logits.size(), "the token",
         fmt::format("0 to {}", logits.size() - 1), id);
  const double highest = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(double(logit) - highest);
  if (!std::isfinite(sum))
    throw std::runtime_error("logits: wanted numbers below infinity, got others");
  const auto logprob = [&](int v) {
    return TokenLogprob{v, double(logits[std::size_t(v)]) - highest - std::log(sum)};
  };

  std::vector<int> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto last = order.begin() + std::ptrdiff_t(std::min(top_logprobs, order.size()));
  std::partial_sort(order.begin(), last, order.end(), [&](int a, int b) {
    const float of_a = logits[std::size_t(a)], of_b = logits[std::size_t(b)];
    return of_a != of_b ? of_a > of_b : a < b;
  });
  TokenLogprobs logprobs{logprob(id), {}};
  std::transform(order.begin(), last, std::back_inserter(logprobs.likeliest), logprob);
  return logprobs;
}

}  // namespace t2t
