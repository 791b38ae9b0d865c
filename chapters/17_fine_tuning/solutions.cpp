// The solutions to the problems on paper of docs/17_fine_tuning.md, docs/17_preferences.md and
// docs/17_rewards.md.
#include "program/solutions.hpp"

#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "17_fine_tuning/preferences/dpo.hpp"
#include "17_fine_tuning/rewards/grpo.hpp"
#include "17_fine_tuning/rewards/pass_at_k.hpp"
#include "program/print.hpp"

namespace t2t {

static Solution largest_rank() {
  constexpr std::size_t out = 576, in = 1536;
  const std::size_t rank = (out * in - 1) / (out + in);
  return {"when it pays",
          fmt::format("r·(576 + 1,536) < 576·1,536 = {}, so up to r = {}. Above that, A and B have "
                      "more elements than the matrix.",
                      with_commas(out * in), rank)};
}

static Solution first_two_steps() {
  // W₀ = 1, A = 2, B = 0, s = 1; the loss is W, so dW = 1, and a step subtracts 0.1 of a gradient.
  const double a = 2, b = -0.1 * a, second_a = a - 0.1 * b, second_b = b - 0.1 * a;
  return {"first two steps",
          fmt::format("Step 1: dB = dW·A = 2, dA = B·dW = 0, so B = {:g}, A = {:g} and W = {:g}. "
                      "Step 2: dB = 2, dA = {:g}, so B = {:g}, A = {:g} and W = {:g}.",
                      b, a, 1 + b * a, b, second_b, second_a, 1 + second_b * second_a)};
}

static Solution falling_answers() {
  const AnswerPair reference = {-2, -3}, model = {-4, -9};
  const double z = dpo_z(model, reference, 0.5);
  return {"both answers fall",
          fmt::format("z = 0.5·((-4 + 2) - (-9 + 3)) = {:g}, so the loss falls from {:.4f} to "
                      "{:.4f}. Yet the chosen answer's probability is e^-2 = {:.3f} times what it "
                      "was: only the difference counts.",
                      z, dpo_loss(0), dpo_loss(z), std::exp(-2.0))};
}

static Solution long_wrong_answers() {
  const std::vector<double> rewards = {1, 0, 0, 0};
  const std::vector<double> a = group_advantages(rewards, 4);
  return {
      "long and wrong",
      fmt::format("A = {:g} and three times {:g}. Each answer has the share 1/4 of its own "
                  "mean, so a token of the wrong answers weighs {:g}, {:g} and {:g}. "
                  "With the constant 4·20, all three weigh {:g}.",
                  a[0], a[1], a[1] / (4 * 2), a[1] / (4 * 4), a[1] / (4 * 20), a[1] / (4 * 20))};
}

static Solution eight_of_ten() {
  return {
      "some of ten",
      fmt::format("pass@1 = 2/10 = {:g}. Of the {} pairs, C(8, 2) = 28 hold no right answer, so "
                  "pass@2 = 17/45 = {:.3f}. Of eight answers at most two are missing, which "
                  "leaves out both right ones in 1 of {} choices: pass@8 = 44/45 = {:.3f}. The "
                  "power gives 1 - 0.8^2 = {:.2f} and 1 - 0.8^8 = {:.3f}.",
                  pass_at_k(10, 2, 1), 45, pass_at_k(10, 2, 2), 45, pass_at_k(10, 2, 8),
                  1 - 0.8 * 0.8, 1 - std::pow(0.8, 8))};
}

std::vector<Solution> solutions() {
  return {largest_rank(), first_two_steps(), falling_answers(), long_wrong_answers(),
          eight_of_ten()};
}

}  // namespace t2t
