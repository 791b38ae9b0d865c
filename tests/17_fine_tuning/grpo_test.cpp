// What must be true of GRPO: advantages compare the answers to one question, clipping stops what
// has moved enough, and the weights are the objective's derivatives.
#include "17_fine_tuning/rewards/grpo.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "17_fine_tuning/bigrams.hpp"
#include "support/all_close.hpp"
#include "support/refuses.hpp"

namespace t2t::grpo_test {

using std::size_t;
using List = std::vector<double>;

static bool are_close(const List& got, const List& want, double bound = 1e-15) {
  bool close = got.size() == want.size();
  for (size_t i = 0; close && i < got.size(); ++i) close = std::abs(got[i] - want[i]) <= bound;
  return close;
}

TEST_CASE("by hand: an advantage compares an answer with its own group") {
  CHECK(are_close(group_advantages(List{1, 0, 0, 0}, 4), {0.75, -0.25, -0.25, -0.25}));
  // The second group's mean is 1: the first group's rewards don't matter to it.
  CHECK(are_close(group_advantages(List{1, 0, 1, 1}, 2), {0.5, -0.5, 0, 0}));
  CHECK(are_close(group_advantages(List{3, 1, 2, -2, 0, 2}, 3), {1, -1, 0, -2, 0, 2}));
  CHECK(equal_groups(List{1, 0, 1, 1}, 2) == 0.5);
  CHECK(equal_groups(List{1, 0, 1, 1}, 4) == 0);
  CHECK(equal_groups(List{2, 2}, 2) == 1);
}

TEST_CASE("by hand: with the standard deviation, and where it is 0") {
  const double deviation = std::sqrt(3.0) / 4;
  const double right = 0.75 / (deviation + 1e-4), wrong = -0.25 / (deviation + 1e-4);
  CHECK(are_close(group_advantages(List{1, 0, 0, 0}, 4, true), {right, wrong, wrong, wrong}));
  CHECK(are_close(group_advantages(List{1, 1, 1, 1}, 4, true), {0, 0, 0, 0}));
  // Rewards that differ by rounding alone do not become advantages of 1.
  for (const double a : group_advantages(List{0.3, 0.3 + 1e-9, 0.3 + 2e-9}, 3, true))
    CHECK(std::abs(a) < 2e-5);
}

TEST_CASE("by hand: clipping stops a token that has moved in its advantage's direction") {
  struct Row {
    double ratio, of_good, of_bad;  // the weights for A = 1 and for A = -1
  };
  for (const auto& [ratio, of_good, of_bad] :
       {Row{0.5, 0.5, 0}, Row{0.81, 0.81, -0.81}, Row{1, 1, -1}, Row{1.19, 1.19, -1.19},
        Row{1.5, 0, -1.5}}) {
    CAPTURE(ratio);
    CHECK(clipped_weight(ratio, 1, 0.2) == of_good);
    CHECK(clipped_weight(ratio, -1, 0.2) == of_bad);
  }
  CHECK(clipped_weight(1.5, 0, 0.2) == 0);
}

/// Three answers of 2, 2 and 10 tokens, the last of which ends none.
static Batch short_and_long() {
  return batch_of(
      {bigram_answer({1, 2}), bigram_answer({0, 2}), bigram_answer({0, 1, 0, 1, 0, 1, 0, 1, 0, 1})},
      11);
}

TEST_CASE("by hand: the three ways to divide, for wrong answers of 2 and of 10 tokens") {
  const Batch batch = short_and_long();
  const List rewards = {1, 0, 0}, equal(33);
  std::vector<float> weights(33, 7);
  const auto weigh = [&](TokenShare share) {
    GrpoOptions options{.group = 3, .share = share, .most = 10};
    CHECK(grpo_weights(batch, {rewards, equal, equal, {}}, options, weights) == 0);
  };
  const auto expect_shares = [&](double right, double brief, double lengthy) {
    for (size_t i = 0; i < 33; ++i) {
      CAPTURE(i);
      const double of_answer = i < 11 ? right : i < 22 ? brief : lengthy;
      const double want = batch.targets[i] == not_learned ? 0 : of_answer;
      CHECK(std::abs(double(weights[i]) - want) < 1e-8);
    }
  };
  weigh(TokenShare::own_length);
  expect_shares(2.0 / 3 / 6, -1.0 / 3 / 6, -1.0 / 3 / 30);
  weigh(TokenShare::all_tokens);
  expect_shares(2.0 / 3 / 14, -1.0 / 3 / 14, -1.0 / 3 / 14);
  weigh(TokenShare::constant);
  expect_shares(2.0 / 3 / 30, -1.0 / 3 / 30, -1.0 / 3 / 30);
}

/// −Σ n·(min(ρA, clip(ρ)A) − κx²/2), in float64 for a table of bigrams: what GRPO minimizes.
static double objective(const Doubles& table, const Doubles& old, const Doubles& reference,
                        const Batch& batch, const List& advantages, const GrpoOptions& options) {
  const List now = bigram_log_p(table, batch), then = bigram_log_p(old, batch),
             ref = bigram_log_p(reference, batch);
  double sum = 0;
  for (size_t i = 0; i < now.size(); ++i) {
    if (batch.targets[i] == not_learned) continue;
    const double a = advantages[i / batch.T], ratio = std::exp(now[i] - then[i]);
    const double clipped = std::clamp(ratio, 1 - options.epsilon, 1 + options.epsilon);
    const double x = now[i] - ref[i];
    sum -= std::min(ratio * a, clipped * a) - options.kappa * x * x / 2;
  }
  return sum / (double(batch.B) * double(options.most));
}

TEST_CASE("the weights give the objective's gradient, by differences in float64") {
  const Batch two = batch_of({bigram_answer({1, 2}), bigram_answer({0, 2}), bigram_answer({1, 1}),
                              bigram_answer({2}), bigram_answer({0, 0}), bigram_answer({1, 0})},
                             2);
  const List rewards = {1, 0, 0.5, -1, 0, 2},
             advantages = {0.5, -0.5, 0, -4.0 / 3, -1.0 / 3, 5.0 / 3};
  Doubles table = bigram_table(1);
  Doubles old = table;  // near the table, so that some ratios are clipped and some are not
  for (size_t i = 0; i < 9; ++i) old.numbers[i] += 0.4 * std::sin(double(3 * i + 1));
  const Doubles reference = bigram_table(4);
  for (const double kappa : {0.0, 0.6}) {
    CAPTURE(kappa);
    const GrpoOptions options{.group = 3, .kappa = kappa, .most = 4};
    // Groups of three: rewards (1, 0, 1/2) and (-1, 0, 2).
    std::vector<float> weights(12);
    const double clipped = grpo_weights(
        two,
        {rewards, bigram_log_p(table, two), bigram_log_p(old, two), bigram_log_p(reference, two)},
        options, weights);
    CHECK((clipped > 0 && clipped < 1));
    const Tensor<2> got = bigram_gradient(table, two, weights);
    const Tensor<2> want = by_differences(
        table, [&] { return objective(table, old, reference, two, advantages, options); });
    // Up to 11 tokens add to a row, each with a weight of up to 4/24.
    CHECK(all_close(got, want, rounding(11, 2) + 1e-8));
  }
}

TEST_CASE(
    "weights of p times the reward give the gradient of the expected reward, less any constant") {
  const std::vector<Transcript> answers = all_bigram_answers();
  const Batch batch = batch_of(answers, 2);
  Doubles table = bigram_table(1);
  const List rewards = {1, 0, -2, 0.5, 3, 0, 1};
  const auto p_of = [&](size_t b) {
    const List log_p = bigram_log_p(table, batch);
    return std::exp(log_p[2 * b] + log_p[2 * b + 1]);
  };
  const auto expected = [&] {
    double sum = 0;
    for (size_t b = 0; b < 7; ++b) sum += p_of(b) * rewards[b];
    return sum;
  };
  double all = 0;
  for (size_t b = 0; b < 7; ++b) all += p_of(b);
  REQUIRE(std::abs(all - 1) < 1e-15);
  const Tensor<2> want = by_differences(table, [&] { return -expected(); });
  for (const double baseline : {0.0, 1.7}) {
    std::vector<float> weights(14);
    for (size_t i = 0; i < 14; ++i) weights[i] = float(p_of(i / 2) * (rewards[i / 2] - baseline));
    CHECK(all_close(bigram_gradient(table, batch, weights), want, rounding(14, 8) + 1e-8));
  }
}

TEST_CASE("tokens of the question and of padding have no weight, the end mark has") {
  const Batch batch = short_and_long();
  const List rewards = {1, 0, 0}, equal(33);
  std::vector<float> weights(33, 7);
  grpo_weights(batch, {rewards, equal, equal, {}}, {.group = 3, .most = 10}, weights);
  CHECK(weights[1] > 0);   // the end mark of the first answer
  CHECK(weights[2] == 0);  // after it
  CHECK(weights[12] < 0);
  CHECK(weights[13] == 0);
  CHECK(weights[31] < 0);
  CHECK(weights[32] == 0);
}

TEST_CASE("what does not fit is refused") {
  REFUSES(group_advantages(List{1, 0, 1}, 2), "rewards: wanted a multiple of 2, the group, got 3");
  REFUSES(group_advantages(List{}, 2), "rewards: wanted a multiple of 2, the group, got 0");
  REFUSES(group_advantages(List{1, 0}, 1),
          "group, the answers to a question: wanted at least 2, got 1");
  REFUSES(group_advantages(List{1, std::numeric_limits<double>::infinity()}, 2),
          "rewards: answer 1 has inf, wanted a finite number");
  const Batch batch = short_and_long();
  const List rewards = {1, 0, 0}, equal(33), few(5);
  std::vector<float> weights(33), no_room(5);
  const auto weigh = [&](GrpoOptions options, const ScoredAnswers& answers) {
    options.group = 3;
    return grpo_weights(batch, answers, options, weights);
  };
  REFUSES(weigh({.most = 9}, {rewards, equal, equal, {}}),
          "tokens of an answer: wanted at most 9, got 10");
  REFUSES(weigh({.most = 0}, {rewards, equal, equal, {}}),
          "most, the tokens of an answer: wanted at least 1, got 0");
  REFUSES(weigh({.epsilon = 1, .most = 10}, {rewards, equal, equal, {}}),
          "epsilon: wanted above 0 and below 1, got 1");
  REFUSES(weigh({.kappa = -1, .most = 10}, {rewards, equal, equal, {}}),
          "kappa: wanted a number of at least 0, got -1");
  REFUSES(weigh({.kappa = 1, .most = 10}, {rewards, equal, equal, {}}),
          "the reference's ln p: wanted one for each of the batch's tokens, got 0");
  REFUSES(weigh({.most = 10}, {few, equal, equal, {}}),
          "rewards: wanted one for each sequence, got 5");
  REFUSES(weigh({.most = 10}, {rewards, few, equal, {}}),
          "ln p: wanted one for each of the batch's tokens, got 5");
  REFUSES(weigh({.most = 10}, {rewards, equal, few, {}}),
          "the old ln p: wanted one for each of the batch's tokens, got 5");
  REFUSES(grpo_weights(batch, {rewards, equal, equal, {}}, {.group = 3, .most = 10}, no_room),
          "weights: wanted one for each of the batch's tokens, got 5");
  Batch none = batch;
  std::ranges::fill(none.targets, not_learned);
  REFUSES(grpo_weights(none, {rewards, equal, equal, {}}, {.group = 3, .most = 10}, weights),
          "targets that are to be learned: wanted at least 1, got 0");
}

}  // namespace t2t::grpo_test
