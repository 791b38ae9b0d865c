// What must be true of a loss with a weight for each token, and of whole models that learn by it.
#include "17_fine_tuning/preferences/weighted_loss.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "13_training/along_gradient.hpp"
#include "13_training/cases.hpp"
#include "13_training/differences.hpp"
#include "17_fine_tuning/preferences/policy.hpp"
#include "support/all_close.hpp"
#include "support/hashed_numbers.hpp"
#include "support/refuses.hpp"

namespace t2t::weighted_loss_test {

using std::size_t;

static constexpr double u = 0x1p-24;
static constexpr float nan = std::numeric_limits<float>::quiet_NaN();

TEST_CASE("by hand: a weight of 2 and one of -1") {
  // Both rows have the probabilities 1/4 and 3/4.
  const float ln3 = std::log(3.0f);
  Tensor<2> logits = {{0, ln3}, {0, ln3}, {1, 2}};
  std::vector<double> losses(3, -7);
  const std::vector<float> weights = {2, -1, nan};  // that of a token not learned is not read
  const double sum = weighted_loss_rows(logits, std::vector{0, 1, not_learned}, weights, losses);
  CHECK(std::abs(losses[0] - std::log(4.0)) <= 8 * u);
  CHECK(std::abs(losses[1] - std::log(4.0 / 3)) <= 8 * u);
  CHECK(losses[2] == 0);
  CHECK(std::abs(sum - (2 * losses[0] - losses[1])) <= 1e-15);
  CHECK(all_close(logits, Tensor<2>{{-1.5f, 1.5f}, {-0.25f, 0.25f}, {0, 0}}, 16 * u));
}

TEST_CASE("the weighted loss and its gradient are what float64 and differences give") {
  for (const size_t V : {1, 2, 37, 130})
    for (const size_t T : {1, 5, 150}) {
      CAPTURE(V);
      CAPTURE(T);
      if (V * T > 6000) continue;
      std::vector<int> targets;
      std::vector<float> weights;
      for (size_t t = 0; t < T; ++t) {
        targets.push_back(t % 3 == 2 ? not_learned : int((7 * t * t + 3) % V));
        weights.push_back(float(t % 4) * 0.5f - 0.7f);
      }
      Tensor<2> logits = numbers(1, 12, 0, T, V);
      Doubles x(logits);
      const auto loss = [&] {
        double sum = 0;
        for (size_t t = 0; t < T; ++t) {
          if (targets[t] == not_learned) continue;
          double exps = 0;
          for (size_t v = 0; v < V; ++v) exps += std::exp(x(t, v));
          sum += double(weights[t]) * (std::log(exps) - x(t, size_t(targets[t])));
        }
        return sum;
      };
      const double want_sum = loss();
      const Tensor<2> want = by_differences(x, loss);
      std::vector<double> losses(T);
      // Each loss is off by a few roundings and a share of a sum of V terms; weights are below 1.
      CHECK(std::abs(weighted_loss_rows(logits, targets, weights, losses) - want_sum) <=
            double(T) * rounding(V, 1));
      // By differences of T terms of up to 10, a gradient is off by another 1e-9.
      CHECK(all_close(logits, want, rounding(V, 1) + 1e-8));
      for (size_t t = 0; t < T; ++t) {
        double of_row = 0;
        for (const float gradient : row(logits, t)) of_row += double(gradient);
        CHECK(std::abs(of_row) <= rounding(V, 1));
      }
    }
}

TEST_CASE("weights and targets that don't fit are refused, before anything is written") {
  Tensor<2> logits = {{0, 1}, {2, 3}};
  const Tensor<2> before = logits;
  std::vector<double> losses(2), three(3);
  const std::vector<int> targets = {0, 1};
  const std::vector<float> weights = {1, 1}, one = {1}, bad = {1, nan};
  REFUSES(weighted_loss_rows(logits, targets, one, losses),
          "weights: wanted one for each target, got 1");
  REFUSES(weighted_loss_rows(logits, targets, bad, losses),
          "weights: token 1 has nan, wanted a finite number");
  REFUSES(weighted_loss_rows(logits, targets, weights, three),
          "losses: wanted room for one of each target, got 3");
  REFUSES(weighted_loss_rows(logits, std::vector{0, 2}, weights, losses),
          "targets: token 1 is 2, wanted one in [0, 2), or -1 for one that is not learned");
  CHECK(all_close(logits, before, 0));
}

/// Weights of either sign for three_texts.
static std::vector<float> some_weights(size_t N) {
  std::vector<float> weights;
  for (size_t i = 0; i < N; ++i) weights.push_back(std::sin(float(i + 1)) / float(N));
  return weights;
}

TEST_CASE("a whole model's gradients are what its weighted loss changes by") {
  const Case c = llama();
  Batch batch = three_texts(c.config.V);
  batch.targets[4] = batch.targets[30] = not_learned;
  const std::vector<float> weights = some_weights(39);
  WeightedPasses passes(c.config, 3, 13);
  ModelWeights gradients = zeros_of(c.config);
  const double sum = passes.add(c.model(), batch, weights, gradients);
  const auto loss = [&](const Model& model) {
    const std::vector<double>& log_p = passes.log_p(model, batch);
    double sum = 0;
    for (size_t i = 0; i < 39; ++i) sum -= double(weights[i]) * log_p[i];
    return sum;
  };
  CHECK(std::abs(sum - loss(c.model())) <= c.bound(1));
  CHECK(passes.log_p(c.model(), batch)[4] == 0);
  CHECK(std::abs(slope_along(gradients, c, 4e-4, loss) - 1) < 4e-3);
  CHECK(off_at_random(gradients, c, 1e-4, loss) < 0.03);
}

TEST_CASE("equal weights give the gradients of chapter 13's mean loss") {
  const Case c = gpt2();
  const Batch batch = three_texts(c.config.V);
  WeightedPasses weighted(c.config, 3, 13);
  Gradients plain(c.config, 3, 13);
  ModelWeights got = zeros_of(c.config), want = zeros_of(c.config);
  const std::vector<float> weights(39, 1.0f / 39);
  const double sum = weighted.add(c.model(), batch, weights, got);
  CHECK(std::abs(sum - plain.add(c.model(), batch, 1.0f / 39, want) / 39) <= c.bound(1));
  const auto a = tensors_of(got, c.config), b = tensors_of(want, c.config);
  const double norm = gradient_norm(b);
  for (size_t i = 0; i < a.size(); ++i) {
    CAPTURE(full_name(a[i].info));
    double worst = 0;
    for (size_t j = 0; j < a[i].numbers.size(); ++j)
      worst = std::max(worst, std::abs(double(a[i].numbers[j]) - double(b[i].numbers[j])));
    CHECK(worst <= c.bound(norm));  // one rounding more of each logit's gradient
  }
}

TEST_CASE("a batch whose logits are computed in two parts gets each token's own weight") {
  // With V = 60,000 there are logits of 69 rows at a time, and the batch has 100.
  Config config{.block = llama_style(8, 2, 2, 8), .L = 1, .V = 60000, .T_max = 50, .tied = true};
  Random random(3);
  const Model model(config, draw_model(config, random));
  Batch both = make_batch(2, 50), one = make_batch(1, 50);
  for (size_t i = 0; i < 100; ++i)
    both.ids[i] = int(i * i * 37 % 60000), both.targets[i] = int(i * i * 41 % 60000);
  std::copy(both.ids.begin() + 50, both.ids.end(), one.ids.begin());
  std::copy(both.targets.begin() + 50, both.targets.end(), one.targets.begin());
  WeightedPasses of_both(config, 2, 50), of_one(config, 1, 50);
  const std::vector<double> got = of_both.log_p(model, both), want = of_one.log_p(model, one);
  for (size_t i = 0; i < 50; ++i) CHECK(std::abs(got[50 + i] - want[i]) < 1e-4);

  // Only the second sequence has weights, each of its own.
  std::vector<float> weights(100, 0.0f);
  for (size_t i = 0; i < 50; ++i) weights[50 + i] = std::sin(float(i + 1)) / 50;
  ModelWeights of_second = zeros_of(config), alone = zeros_of(config);
  of_both.add(model, both, weights, of_second);
  of_one.add(model, one, ConstRow(weights).subspan(50), alone);
  const auto a = tensors_of(of_second, config), b = tensors_of(alone, config);
  const double norm = gradient_norm(b);
  REQUIRE(norm > 0);
  for (size_t i = 0; i < a.size(); ++i) {
    double squares = 0;
    for (size_t j = 0; j < a[i].numbers.size(); ++j)
      squares += std::pow(double(a[i].numbers[j]) - double(b[i].numbers[j]), 2);
    CHECK(std::sqrt(squares) <= 1e-5 * norm);
  }
  REFUSES(of_both.add(model, both, ConstRow(weights).first(50), of_second),
          "weights: wanted one for each of the batch's tokens, got 50");
}

TEST_CASE("a step makes tokens of positive weight likelier, and those of negative weight less so") {
  const Case c = llama();
  Batch batch = three_texts(c.config.V);
  Policy policy(c.model(), {3, 13, {{1e-3f, 1e-3f, 0, 10}, {.decay = 0}, 1}});
  std::vector<float> weights(39, 0.0f);
  std::fill(weights.begin(), weights.begin() + 13, 0.1f);
  std::fill(weights.begin() + 26, weights.end(), -0.1f);
  const std::vector<double> before = policy.log_p(batch);
  const StepReport report = policy.step_on(batch, weights);
  const std::vector<double> after = policy.log_p(batch);
  const auto change = [&](size_t first) {
    double sum = 0;
    for (size_t i = first; i < first + 13; ++i) sum += after[i] - before[i];
    return sum;
  };
  CHECK(change(0) > 0);
  CHECK(change(26) < 0);
  double loss = 0;
  for (size_t i = 0; i < 39; ++i) loss -= double(weights[i]) * before[i];
  CHECK(std::abs(report.loss - loss) <= c.bound(10));
}

TEST_CASE("supervised fine-tuning weighs each learned token alike, whatever its answer's length") {
  const Case c = llama();
  Batch batch = three_texts(c.config.V);
  for (size_t i = 0; i < 39; ++i)
    if (i >= 2 && i < 36) batch.targets[i] = not_learned;  // two tokens, none, and three
  Policy policy(c.model(), {3, 13, {{1e-3f, 1e-3f, 0, 10}, {.decay = 0}, 1}});
  const std::vector<double> log_p = policy.log_p(batch);
  double mean = 0;
  for (const double of : log_p) mean -= of / 5;
  CHECK(std::abs(learn_answers(policy, batch).loss - mean) <= c.bound(1));
  batch.targets.assign(39, not_learned);
  REFUSES(learn_answers(policy, batch), "targets that are to be learned: wanted at least 1, got 0");
}

}  // namespace t2t::weighted_loss_test
