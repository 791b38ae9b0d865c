// What must be true of the acceptance of drafts: whatever the drafts are drawn from, the tokens are
// drawn from the target's probabilities.
#include "15_serving/speculation/acceptance.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "04_causal_attention/fast/softmax_rows.hpp"
#include "09_language_model/sampling.hpp"
#include "random.hpp"
#include "support/all_close.hpp"
#include "support/lists.hpp"
#include "support/refuses.hpp"

namespace t2t::acceptance_test {

using std::size_t;
using Floats = std::vector<float>;

static Tensor<1> tensor(const Floats& numbers) {
  Tensor<1> x = empty(numbers.size());
  std::ranges::copy(numbers, x.begin());
  return x;
}
static Tensor<1> residual_of(const Floats& p, const Floats& q) {
  Tensor<1> rest = empty(p.size());
  residual(p, q, row(rest));
  return rest;
}
static Tensor<2> rows(const std::vector<Floats>& rows, size_t V) {
  Tensor<2> x = empty(rows.size(), V);
  for (size_t i = 0; i < rows.size(); ++i) std::ranges::copy(rows[i], row(x, i).begin());
  return x;
}

/// Some rows of probabilities: equal ones, ones that differ everywhere, and ones without a common
/// token.
struct Pair {
  Floats p, q;
};
static std::vector<Pair> pairs() {
  return {{{0.5f, 0.3f, 0.2f}, {0.2f, 0.2f, 0.6f}},
          {{0.25f, 0.25f, 0.5f}, {0.25f, 0.25f, 0.5f}},
          {{0, 0.5f, 0.5f, 0}, {0.5f, 0, 0, 0.5f}},
          {{0.1f, 0.2f, 0.3f, 0.4f}, {0.4f, 0.3f, 0.2f, 0.1f}},
          {{0.9f, 0.05f, 0.05f}, {0.1f, 0.1f, 0.8f}}};
}

TEST_CASE("by hand: half of a draft that is twice too likely, and the rest where p exceeds q") {
  const Floats p = {0.5f, 0.3f, 0.2f}, q = {0.2f, 0.2f, 0.6f};
  CHECK(acceptance(p, q, 0) == 1);
  CHECK(acceptance(p, q, 1) == 1);
  CHECK(acceptance(p, q, 2) == doctest::Approx(1.0 / 3));
  CHECK(acceptance_rate(p, q) == doctest::Approx(0.6));
  // p − q is 0.3, 0.1 and −0.4.
  CHECK(all_close(residual_of(p, q), tensor({0.75f, 0.25f, 0}), 1e-6));
  const Tensor<2> target = rows({p, {0, 0, 1}}, 3), draft = rows({q}, 3);
  const auto tokens = [&](int drafted, double u, double v) {
    return accept_drafts(target, draft, Ids{drafted}, std::vector<double>{u, v});
  };
  CHECK(tokens(2, 0.33, 0.5) == Ids{2, 2});  // accepted, and one more from the second row
  CHECK(tokens(2, 0.34, 0.74) == Ids{0});    // from the residual
  CHECK(tokens(2, 0.34, 0.76) == Ids{1});
  CHECK(tokens(0, 0.99, 0.5) == Ids{0, 2});
}

TEST_CASE("by hand: of three drafts the first that is not accepted ends the tokens") {
  // Each row of p is sure of its token.
  const Tensor<2> p = rows({{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}, {0, 0, 0, 1}}, 4);
  const Floats even(4, 0.25f);
  const Tensor<2> q = rows({even, even, even}, 4);
  const auto tokens = [&](const Ids& drafts) {
    return accept_drafts(p, q, drafts, std::vector<double>{0.3, 0.3, 0.3, 0.9});
  };
  CHECK(tokens({0, 1, 2}) == Ids{0, 1, 2, 3});
  CHECK(tokens({0, 1, 3}) == Ids{0, 1, 2});
  CHECK(tokens({0, 2, 2}) == Ids{0, 1});
  CHECK(tokens({3, 1, 2}) == Ids{0});
  const Tensor<2> last = rows({{0, 1, 0, 0}}, 4), none = empty(0, 4);
  CHECK(accept_drafts(last, none, Ids{}, std::vector<double>{0.5}) == Ids{1});
}

TEST_CASE("exactly: added up over all drafts, each token has the target's probability") {
  for (const auto& [p, q] : pairs()) {
    Tensor<1> got = tensor(Floats(p.size(), 0));
    const Tensor<1> rest = residual_of(p, q);
    double rate = 0;
    for (size_t x = 0; x < p.size(); ++x) {
      const double accepted = acceptance(p, q, int(x));
      rate += double(q[x]) * accepted;
      got(x) += float(double(q[x]) * accepted);
      for (size_t v = 0; v < p.size(); ++v)
        got(v) += float(double(q[x]) * (1 - accepted)) * rest(v);
    }
    // Up to a dozen roundings of numbers up to 1.
    CHECK(all_close(got, tensor(p), 12 * 0x1p-24));
    CHECK(acceptance_rate(p, q) == doctest::Approx(rate));
  }
}

TEST_CASE("a residual sums to 1, and has nothing where q is larger") {
  Random random(1);
  for (size_t round = 0; round < 20; ++round) {
    const size_t V = 1 + round * 7;
    Tensor<1> p = random.normal<1>({V}), q = random.normal<1>({V}), rest = empty(V);
    softmax_row(row(p)), softmax_row(row(q));
    residual(row(p), row(q), row(rest));
    double sum = 0;
    for (size_t v = 0; v < V; ++v) {
      sum += double(rest(v));
      CHECK(rest(v) >= 0);
      if (p(v) <= q(v) && V > 1) CHECK(rest(v) == 0);
    }
    CHECK(std::abs(sum - 1) < double(V + 2) * 0x1p-24);
  }
}

/// Pearson's statistic: Σ (seen − expected)² / expected. A token that is never expected and was
/// seen gives infinity.
static double chi_square(const std::vector<size_t>& seen, ConstRow p, size_t count) {
  double sum = 0;
  for (size_t v = 0; v < seen.size(); ++v) {
    const double expected = double(p[v]) * double(count), off = double(seen[v]) - expected;
    if (expected > 0) sum += off * off / expected;
    if (expected == 0 && seen[v] > 0) return std::numeric_limits<double>::infinity();
  }
  return sum;
}
/// With so many tokens fewer than in the row as degrees of freedom, the statistic of a right draw
/// is above these in one of a hundred thousand seeds.
static double quantile(size_t V) {
  return std::vector<double>{0, 19.5, 23.0, 25.9, 28.5}.at(V - 1);
}

TEST_CASE("drawn tokens have the target's probabilities, at each of their places") {
  const size_t draws = 4000;
  for (const auto& [p, q] : pairs()) {
    const size_t V = p.size();
    // The second row has the probabilities the other way round.
    Floats p2(p.rbegin(), p.rend()), q2(q.begin(), q.end());
    const Tensor<2> target = rows({p, p2, p}, V), draft = rows({q, q2}, V);
    std::vector<std::vector<size_t>> seen(3, std::vector<size_t>(V, 0));
    Random random(2);
    size_t tokens = 0;
    for (size_t i = 0; i < draws; ++i) {
      const Ids drafts = {token_at(q, random.next_uniform()), token_at(q2, random.next_uniform())};
      const std::vector<double> uniform = {random.next_uniform(), random.next_uniform(),
                                           random.next_uniform()};
      const Ids said = accept_drafts(target, draft, drafts, uniform);
      for (size_t place = 0; place < said.size(); ++place) ++seen[place][size_t(said[place])];
      tokens += said.size();
    }
    for (size_t place = 0; place < 3; ++place) {
      CAPTURE(place);
      size_t count = 0;
      for (const size_t of_token : seen[place]) count += of_token;
      CHECK(chi_square(seen[place], row(target, place), count) < quantile(V));
    }
    const double first = acceptance_rate(p, q), second = acceptance_rate(p2, q2);
    // The mean of numbers from 1 to 3, whose deviation is at most 1: five deviations of the mean.
    CHECK(std::abs(double(tokens) / double(draws) - (1 + first + first * second)) <
          5 / std::sqrt(double(draws)));
  }
}

TEST_CASE("a temperature is one of both models") {
  const Floats target = {0, 1, 2, 3}, draft = {1.5f, 0, 1, 0.5f};
  const float temperature = 0.4f;
  Tensor<1> p = tensor(target), q = tensor(draft);
  for (Tensor<1>* x : {&p, &q}) {
    for (float& logit : *x) logit /= temperature;
    softmax_row(row(*x));
  }
  std::vector<size_t> seen(4, 0);
  Random random(3);
  const size_t draws = 4000;
  for (size_t i = 0; i < draws; ++i) {
    Tensor<2> targets = rows({target, target}, 4), drafts = rows({draft}, 4);
    const Ids drafted = {token_at(row(q), random.next_uniform())};
    const std::vector<double> uniform = {random.next_uniform(), random.next_uniform()};
    ++seen[size_t(accept_drafts_of_logits(targets, drafts, temperature, drafted, uniform)[0])];
  }
  CHECK(chi_square(seen, row(p), draws) < quantile(4));
}

TEST_CASE("by hand: tokens of a pass, and where drafts are slower than none") {
  CHECK(expected_tokens(0.5, 3) == doctest::Approx(1.875));
  CHECK(expected_tokens(1, 3) == 4);
  CHECK(expected_tokens(0, 3) == 1);
  CHECK(expected_tokens(0.8, 0) == 1);
  CHECK(expected_speedup(0.5, 3, 0.25) == doctest::Approx(1.875 / 1.75));
  CHECK(expected_speedup(0.2, 4, 0.1) < 1);
  for (const double alpha : {0.1, 0.6, 0.9})
    for (const size_t k : {1, 4, 9})
      CHECK(expected_tokens(alpha, k) ==
            doctest::Approx((1 - std::pow(alpha, double(k + 1))) / (1 - alpha)));
}

TEST_CASE("acceptance refuses rows that do not fit, by name") {
  const Floats p = {0.5f, 0.5f}, q = {0.5f, 0.25f, 0.25f}, none;
  Tensor<1> rest = empty(3);
  REFUSES(acceptance(p, q, 0), "q, the draft's probabilities: wanted shape [2], got [3]");
  REFUSES(acceptance(none, none, 0), "p, the target's probabilities: wanted at least 1, got 0");
  REFUSES(acceptance(q, q, 3), "the drafted token: wanted 0 to 2, got 3");
  REFUSES(acceptance(q, q, -1), "the drafted token: wanted 0 to 2, got -1");
  REFUSES(acceptance_rate(p, q), "q, the draft's probabilities: wanted shape [2], got [3]");
  REFUSES(residual(p, p, row(rest)), "rest: wanted shape [2], got [3]");
  const Tensor<2> one = rows({p}, 2), two = rows({p, p}, 2);
  const std::vector<double> u = {0.5, 0.5};
  REFUSES(accept_drafts(one, one, Ids{0}, u), "rows of p: wanted k + 1 = 2, got 1");
  REFUSES(accept_drafts(two, two, Ids{0}, u), "rows of q: wanted k = 1, got 2");
  REFUSES(accept_drafts(two, one, Ids{0}, std::span(u).first(1)),
          "uniform numbers: wanted k + 1 = 2, got 1");
  Tensor<2> logits = two, draft = one;
  REFUSES(accept_drafts_of_logits(logits, draft, 0, Ids{0}, u),
          "temperature: wanted a number above 0, got 0");
  REFUSES(expected_tokens(1.5, 2), "alpha, the acceptance rate: wanted 0 to 1, got 1.5");
  REFUSES(expected_speedup(0.5, 2, -1), "cost of a draft: wanted 0 or above, got -1");
}

}  // namespace t2t::acceptance_test
