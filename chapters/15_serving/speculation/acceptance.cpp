#include "15_serving/speculation/acceptance.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "04_causal_attention/fast/softmax_rows.hpp"
#include "09_language_model/sampling.hpp"
#include "shapes.hpp"

namespace t2t {

static void expect_rows(ConstRow p, ConstRow q) {
  expect(!p.empty(), "p, the target's probabilities", "at least 1", 0);
  expect_shape("q, the draft's probabilities", q, {p.size()});
}

double acceptance(ConstRow p, ConstRow q, int token) {
  expect_rows(p, q);
  expect(token >= 0 && std::size_t(token) < p.size(), "the drafted token",
         fmt::format("0 to {}", p.size() - 1), token);
  const double of_p = double(p[std::size_t(token)]), of_q = double(q[std::size_t(token)]);
  return of_p >= of_q ? 1 : of_p / of_q;
}

double acceptance_rate(ConstRow p, ConstRow q) {
  expect_rows(p, q);
  double rate = 0;
  for (std::size_t v = 0; v < p.size(); ++v) rate += double(std::min(p[v], q[v]));
  return rate;
}

void residual(ConstRow p, ConstRow q, Row rest) {
  expect_rows(p, q);
  expect_shape("rest", rest, {p.size()});
  double sum = 0;
  for (std::size_t v = 0; v < p.size(); ++v) {
    rest[v] = std::max(0.0f, p[v] - q[v]);
    sum += double(rest[v]);
  }
  if (sum == 0) std::ranges::copy(p, rest.begin());
  if (sum == 0) return;
  for (float& probability : rest) probability = float(double(probability) / sum);
}

std::vector<int> accept_drafts(ConstMatrix p, ConstMatrix q, std::span<const int> drafts,
                               std::span<const double> uniform) {
  const std::size_t k = drafts.size();
  expect(p.rows == k + 1, "rows of p", fmt::format("k + 1 = {}", k + 1), p.rows);
  expect(q.rows == k, "rows of q", fmt::format("k = {}", k), q.rows);
  expect(uniform.size() == k + 1, "uniform numbers", fmt::format("k + 1 = {}", k + 1),
         uniform.size());
  std::vector<int> tokens;
  for (std::size_t i = 0; i < k; ++i) {
    if (uniform[i] < acceptance(p.row(i), q.row(i), drafts[i])) {
      tokens.push_back(drafts[i]);
      continue;
    }
    // The residual is what the accepted drafts leave of p.
    std::vector<float> rest(p.cols);
    residual(p.row(i), q.row(i), rest);
    tokens.push_back(token_at(rest, uniform[k]));
    return tokens;
  }
  tokens.push_back(token_at(p.row(k), uniform[k]));
  return tokens;
}

std::vector<int> accept_drafts_of_logits(Matrix target, Matrix drafted, float temperature,
                                         std::span<const int> drafts,
                                         std::span<const double> uniform) {
  for (const Matrix& logits : {target, drafted})
    for (std::size_t i = 0; i < logits.rows; ++i) {
      apply_temperature(logits.row(i), temperature);
      softmax_row(logits.row(i));
    }
  return accept_drafts(target, drafted, drafts, uniform);
}

double expected_tokens(double alpha, std::size_t k) {
  expect(alpha >= 0 && alpha <= 1, "alpha, the acceptance rate", "0 to 1", alpha);
  double tokens = 0, all_accepted = 1;
  for (std::size_t i = 0; i <= k; ++i, all_accepted *= alpha) tokens += all_accepted;
  return tokens;
}

double expected_speedup(double alpha, std::size_t k, double cost) {
  expect(cost >= 0, "cost of a draft", "0 or above", cost);
  return expected_tokens(alpha, k) / (1 + double(k) * cost);
}

}  // namespace t2t
