// What must be true of DPO: the weights are the loss's derivatives, and of two answers to a
// question only the difference counts.
#include "17_fine_tuning/preferences/dpo.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "17_fine_tuning/bigrams.hpp"
#include "support/all_close.hpp"
#include "support/refuses.hpp"

namespace t2t::dpo_test {

using std::size_t;

TEST_CASE("by hand: beta 1/2, a chosen answer that rose by 1 and a rejected one that fell by 1") {
  const double z = dpo_z({-3, -4}, {-4, -3}, 0.5);
  CHECK(z == 1);
  CHECK(std::abs(dpo_loss(z) - 0.3133) < 5e-5);        // ln(1 + 1/e)
  CHECK(std::abs(0.5 * dpo_pull(z) - 0.1345) < 5e-5);  // β/(1 + e)
  CHECK(dpo_z({-3, -4}, {-3, -4}, 0.5) == 0);          // before the first step
  CHECK(std::abs(dpo_loss(0) - std::log(2)) <= 1e-15);
  CHECK(dpo_pull(0) == 0.5);
}

TEST_CASE("by hand: the weights of two answers of unequal lengths") {
  // Lengths 2 and 4; the sums of ln p are -3 and -4, those of the reference -4 and -3.
  const std::vector<Transcript> answers = {bigram_answer({1, 2}), bigram_answer({0, 1, 0, 2})};
  const Batch batch = batch_of(answers, 5);
  const std::vector<double> model = {-3, -4}, reference = {-4, -3};
  std::vector<float> weights(10, 7);
  const DpoReport report = dpo_weights(batch, model, reference, {.beta = 0.5}, weights);
  const float w = float(0.5 / (1 + std::exp(1.0)));
  CHECK(std::abs(w - 0.1345f) < 5e-5f);
  const Tensor<2> want = {{w, w, 0, 0, 0}, {-w, -w, -w, -w, 0}};
  CHECK(all_close(copy_of(ConstMatrix(weights.data(), 2, 5, 5)), want, 1e-8));
  CHECK(std::abs(report.loss - std::log(1 + std::exp(-1.0))) < 1e-15);
  CHECK(report.in_order == 1);
  CHECK(report.chosen == 1);
  CHECK(report.rejected == -1);

  // With a share of 2 of the chosen answer's own loss.
  CHECK(std::abs(dpo_weights(batch, model, reference, {0.5, 2}, weights).loss -
                 (std::log(1 + std::exp(-1.0)) + 6)) < 1e-14);
  const Tensor<2> more = {{w + 2, w + 2, 0, 0, 0}, {-w, -w, -w, -w, 0}};
  CHECK(all_close(copy_of(ConstMatrix(weights.data(), 2, 5, 5)), more, 1e-6));
}

TEST_CASE("by hand: of two pairs, one in order") {
  const Transcript answer = bigram_answer({1, 2});
  const Batch batch = batch_of({answer, answer, answer, answer}, 2);
  const std::vector<double> model = {-3, -4, -4, -3}, reference = {-4, -3, -3, -4};
  std::vector<float> weights(8);
  const DpoReport report = dpo_weights(batch, model, reference, {.beta = 0.5}, weights);
  CHECK(report.in_order == 0.5);
  CHECK(report.chosen == 0);
  CHECK(report.rejected == 0);
}

TEST_CASE("an answer's ln p is the sum over its learned tokens, not their mean") {
  const Batch batch = batch_of({bigram_answer({1, 2}), bigram_answer({0, 1, 0, 2})}, 5);
  const std::vector<double> log_p = {-1, -2, -50, -50, -50, -1, -1, -0.5, -0.25, -50};
  CHECK(answer_log_p(batch, log_p) == std::vector<double>{-3, -2.75});
  REFUSES(answer_log_p(batch, std::vector<double>(9)),
          "ln p: wanted one for each of the batch's tokens, got 9");
}

TEST_CASE("the loss neither overflows nor loses small values") {
  CHECK(dpo_loss(1000) == 0);
  CHECK(dpo_loss(-1000) == 1000);
  CHECK(std::abs(dpo_loss(40) / std::exp(-40.0) - 1) < 1e-15);
  CHECK(dpo_pull(1000) == 0);
  CHECK(dpo_pull(-1000) == 1);
  for (const double z : {-30.0, -3.0, -0.1, 0.0, 0.7, 5.0}) {
    const double h = 1e-6;
    CHECK(std::abs((dpo_loss(z - h) - dpo_loss(z + h)) / (2 * h) - dpo_pull(z)) < 1e-8);
  }
}

/// The loss of two pairs, in float64, for a table of bigrams.
static double loss_of(const Doubles& table, const Doubles& reference, const Batch& batch,
                      const DpoOptions& options) {
  const std::vector<double> now = bigram_log_p(table, batch), then = bigram_log_p(reference, batch);
  const auto sum = [&](const std::vector<double>& log_p, size_t b) {
    double sum = 0;
    for (size_t t = 0; t < batch.T; ++t) sum += log_p[b * batch.T + t];
    return sum;
  };
  double loss = 0;
  for (const size_t i : {0, 1}) {
    const double z =
        options.beta * ((sum(now, i) - sum(then, i)) - (sum(now, 2 + i) - sum(then, 2 + i)));
    loss += (std::log(1 + std::exp(-z)) - options.sft * sum(now, i)) / 2;
  }
  return loss;
}

TEST_CASE("the weights give the loss's gradient, by differences in float64") {
  const Batch batch = batch_of({bigram_answer({1, 2}), bigram_answer({0, 0, 1, 2}),
                                bigram_answer({0, 1, 0, 2}), bigram_answer({2})},
                               4);
  Doubles table = bigram_table(1);
  const Doubles reference = bigram_table(2);
  for (const DpoOptions options : {DpoOptions{0.3, 0}, DpoOptions{2, 0}, DpoOptions{0.3, 0.7}}) {
    CAPTURE(options.beta);
    CAPTURE(options.sft);
    std::vector<float> weights(16);
    const DpoReport report =
        dpo_weights(batch, answer_log_p(batch, bigram_log_p(table, batch)),
                    answer_log_p(batch, bigram_log_p(reference, batch)), options, weights);
    CHECK(std::abs(report.loss - loss_of(table, reference, batch, options)) < 1e-14);
    const Tensor<2> got = bigram_gradient(table, batch, weights);
    const Tensor<2> want =
        by_differences(table, [&] { return loss_of(table, reference, batch, options); });
    // Up to 11 tokens add to a row, each with a weight of at most beta/2 + sft.
    CHECK(all_close(got, want, rounding(11, 11 * (options.beta / 2 + options.sft)) + 1e-8));
  }
}

TEST_CASE("a pair that the model tells apart is hardly moved, one in the wrong order is") {
  const Batch batch = batch_of({bigram_answer({2}), bigram_answer({1, 2})}, 2);
  const std::vector<double> reference = {-1, -1};
  std::vector<float> weights(4);
  dpo_weights(batch, std::vector<double>{-1, -51}, reference, {.beta = 0.1}, weights);  // z = 5
  CHECK(std::abs(weights[0] - 0.1 / (1 + std::exp(5.0))) < 1e-9);
  dpo_weights(batch, std::vector<double>{-51, -1}, reference, {.beta = 0.1}, weights);  // z = -5
  CHECK(std::abs(weights[0] - 0.1 / (1 + std::exp(-5.0))) < 1e-8);
}

TEST_CASE("a step of DPO widens the difference, even where both answers become less likely") {
  // The two answers share all tokens but the last, so their common tokens are not moved at all.
  const Batch batch = batch_of({bigram_answer({1, 2}), bigram_answer({1, 0})}, 2);
  Doubles table = bigram_table(3);
  const Doubles reference = table;
  const auto scores = [&](const Doubles& of) {
    return answer_log_p(batch, bigram_log_p(of, batch));
  };
  std::vector<float> weights(4);
  double last = 1;
  for (int n = 0; n < 5; ++n) {
    const DpoReport report =
        dpo_weights(batch, scores(table), scores(reference), {.beta = 1}, weights);
    CHECK(report.loss < last);
    if (n == 0) CHECK(std::abs(report.loss - std::log(2)) < 1e-15);
    last = report.loss;
    const Tensor<2> gradient = bigram_gradient(table, batch, weights);
    for (size_t v = 0; v < 3; ++v) CHECK(std::abs(gradient(0, v)) < 1e-7f);
    for (size_t i = 0; i < 9; ++i) table.numbers[i] -= double(gradient.data()[i]);
  }
}

TEST_CASE("pairs that don't fit are refused") {
  const Batch batch = batch_of({bigram_answer({2}), bigram_answer({1, 2})}, 2);
  const Batch odd = batch_of({bigram_answer({2})}, 2);
  const std::vector<double> two(2), three(3), one(1);
  std::vector<float> weights(4), few(2);
  REFUSES(dpo_weights(odd, one, one, {}, few),
          "B, a chosen and a rejected answer of each pair: wanted an even number, got 1");
  REFUSES(dpo_weights(batch, three, two, {}, weights),
          "the model's ln p of answers: wanted one for each sequence, got 3");
  REFUSES(dpo_weights(batch, two, three, {}, weights),
          "the reference's ln p of answers: wanted one for each sequence, got 3");
  REFUSES(dpo_weights(batch, two, two, {}, few),
          "weights: wanted one for each of the batch's tokens, got 2");
  REFUSES(dpo_weights(batch, two, two, {.beta = 0}, weights),
          "beta: wanted a number above 0, got 0");
  REFUSES(dpo_weights(batch, two, two, {.sft = -1}, weights),
          "sft, the share of the chosen's loss: wanted a number of at least 0, got -1");
}

}  // namespace t2t::dpo_test
