#include "09_language_model/sampling.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "04_causal_attention/fast/softmax_rows.hpp"
#include "lanes.hpp"
#include "shapes.hpp"

namespace t2t {

static constexpr float dropped = -std::numeric_limits<float>::infinity();

/// Returns the highest logit. Comparisons with NaN are false, so a NaN could be chosen or dropped
/// silently: it is refused here.
static float expect_logits(ConstRow logits) {
  float highest = dropped;
  for (std::size_t v = 0; v < logits.size(); ++v) {
    if (!(logits[v] < std::numeric_limits<float>::infinity()))
      throw std::invalid_argument(
          fmt::format("logits: wanted numbers below infinity, got {} for token {}", logits[v], v));
    highest = std::max(highest, logits[v]);
  }
  if (highest == dropped)
    throw std::invalid_argument("logits: wanted a token above -infinity, got none");
  return highest;
}

static void expect_scratch(const SamplingScratch& scratch, std::size_t V) {
  expect(scratch.order.size() >= V && scratch.weights.size() >= V,
         "scratch, the logits it has room for", "at least the row's", scratch.order.size());
}

int greedy(ConstRow logits) {
  expect_logits(logits);
  return int(std::ranges::max_element(logits) - logits.begin());
}

void apply_temperature(Row logits, float temperature) {
  expect(std::isfinite(temperature) && temperature > 0, "temperature", "a number above 0",
         temperature);
  // Probabilities depend on differences alone. With the highest at 0, no quotient overflows to
  // +infinity.
  const float highest = expect_logits(logits);
  for (float& logit : logits) logit = (logit - highest) / temperature;
}

/// Whether token a comes after b: it is less likely, or as likely with a higher id.
struct Below {
  ConstRow logits;
  bool operator()(int a, int b) const {
    const float of_a = logits[std::size_t(a)], of_b = logits[std::size_t(b)];
    return of_a < of_b || (of_a == of_b && a > b);
  }
};

/// All ids as a heap with the likeliest on top. Taking the first few from it in order is cheaper
/// than sorting a whole vocabulary.
static std::span<int> likeliest_first(ConstRow logits, SamplingScratch& scratch) {
  const std::span<int> heap = std::span(scratch.order).first(logits.size());
  std::iota(heap.begin(), heap.end(), 0);
  std::ranges::make_heap(heap, Below{logits});
  return heap;
}
/// Takes the likeliest remaining id from the heap.
static int take(std::span<int>& heap, ConstRow logits) {
  std::ranges::pop_heap(heap, Below{logits});
  const int id = heap.back();
  heap = heap.first(heap.size() - 1);
  return id;
}

void keep_top_k(Row logits, std::size_t k, SamplingScratch& scratch) {
  expect(k >= 1, "k, the tokens to keep", "at least 1", k);
  expect_logits(logits);
  expect_scratch(scratch, logits.size());
  if (k >= logits.size()) return;
  std::span<int> rest = likeliest_first(logits, scratch);
  for (std::size_t i = 0; i < k; ++i) take(rest, logits);
  for (const int id : rest) logits[std::size_t(id)] = dropped;
}

void keep_top_p(Row logits, float p, SamplingScratch& scratch) {
  expect(p > 0 && p <= 1, "p, the probability to keep", "above 0 and at most 1", p);
  expect_logits(logits);
  expect_scratch(scratch, logits.size());
  if (p == 1) return;
  const Row weights = row(scratch.weights).first(logits.size());
  std::ranges::copy(logits, weights.begin());
  softmax_row(weights);

  // The token with which the sum reaches p is kept too: without it less than p would be left.
  std::span<int> rest = likeliest_first(logits, scratch);
  double sum = 0;
  while (sum < double(p) && !rest.empty()) sum += double(weights[std::size_t(take(rest, logits))]);
  for (const int id : rest) logits[std::size_t(id)] = dropped;
}

void keep_min_p(Row logits, float min_p) {
  expect(min_p >= 0 && min_p <= 1, "min_p, the share of the largest", "0 to 1", min_p);
  const float highest = expect_logits(logits);
  // The logarithm of a ratio of probabilities is a difference of logits: no softmax is needed.
  const float lowest = highest + std::log(min_p);
  for (float& logit : logits)
    if (logit < lowest) logit = dropped;
}

int token_at(ConstRow probabilities, double u) {
  expect(!probabilities.empty(), "probabilities", "at least 1", 0);
  expect(u >= 0 && u < 1, "u, the uniform number", "in [0, 1)", u);
  // Lay the tokens along a line, each as long as its probability, and take the token at a random
  // point. The line's length is 1 but for rounding, which may put the point past its end.
  double left = u * std::accumulate(probabilities.begin(), probabilities.end(), 0.0);
  int last = 0;
  for (std::size_t v = 0; v < probabilities.size(); ++v) {
    if (probabilities[v] == 0) continue;
    last = int(v);
    left -= double(probabilities[v]);
    if (left < 0) break;
  }
  return last;
}

int draw(ConstRow logits, Random& random, SamplingScratch& scratch) {
  expect_logits(logits);
  expect_scratch(scratch, logits.size());
  const Row weights = row(scratch.weights).first(logits.size());
  std::ranges::copy(logits, weights.begin());
  softmax_row(weights);
  return token_at(weights, random.next_uniform());
}

void expect_sampling(const Sampling& sampling) {
  const auto& [temperature, top_k, top_p, min_p] = sampling;
  expect(std::isfinite(temperature) && temperature >= 0, "temperature", "0 (greedy) or above",
         temperature);
  expect(top_p > 0 && top_p <= 1, "top_p", "above 0 and at most 1", top_p);
  expect(min_p >= 0 && min_p <= 1, "min_p", "0 to 1", min_p);
}

int next_token(Row logits, const Sampling& sampling, Random& random, SamplingScratch& scratch) {
  expect_sampling(sampling);
  if (sampling.temperature == 0) return greedy(logits);
  if (sampling.temperature != 1) apply_temperature(logits, sampling.temperature);
  if (sampling.top_k > 0) keep_top_k(logits, sampling.top_k, scratch);
  if (sampling.top_p < 1) keep_top_p(logits, sampling.top_p, scratch);
  if (sampling.min_p > 0) keep_min_p(logits, sampling.min_p);
  return draw(logits, random, scratch);
}

}  // namespace t2t
