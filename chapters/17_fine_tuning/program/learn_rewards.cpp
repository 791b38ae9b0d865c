#include "17_fine_tuning/program/learn_rewards.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "17_fine_tuning/program/sums_model.hpp"
#include "17_fine_tuning/rewards/answers_to.hpp"
#include "17_fine_tuning/rewards/reward_trainer.hpp"
#include "program/print.hpp"
#include "program/progress.hpp"
#include "shapes.hpp"

namespace t2t {

static TokenShare share_named(const std::string& name) {
  if (name == "own_length") return TokenShare::own_length;
  if (name == "all_tokens") return TokenShare::all_tokens;
  if (name == "constant") return TokenShare::constant;
  throw std::invalid_argument("--share: wanted own_length, all_tokens or constant, got " + name);
}

/// A line of the table for the model as it is.
static void add_scores(Table& table, const RewardReport& step, const SumScores& scores) {
  const bool before = step.n == 0;
  table.add({fmt::format("{}", step.n), before ? "" : fmt::format("{:.2f}", step.reward),
             before ? "" : fmt::format("{:.2f}", step.equal), fmt::format("{:.2f}", scores.pass_1),
             fmt::format("{:.2f}", scores.pass_8), fmt::format("{:.3f}", scores.pass_m),
             fmt::format("{:.1f}", scores.length)});
}

/// All steps. The table gets a line before the first, after some and after the last; the scores of
/// the first and the last line are returned.
static std::pair<SumScores, SumScores> train(RewardTrainer& trainer, std::size_t steps,
                                             const std::vector<Sum>& held_out, std::size_t m,
                                             Table& table) {
  const auto score = [&] { return score_sums(trainer.model(), held_out, m, 9); };
  const std::size_t every = std::max<std::size_t>(1, steps / 4);
  const SumScores before = score();
  SumScores now = before;
  add_scores(table, {}, before);
  for (std::size_t n = 1; n <= steps; ++n) {
    const RewardReport step = trainer.step();
    show_progress(fmt::format("{}  reward {:.2f} ", steps_done(n, steps), step.reward));
    if (n % every != 0 && n != steps) continue;
    now = score();
    add_scores(table, step, now);
  }
  show_progress("");
  return {before, now};
}

/// What pass@1 hides: sums that are answered for the first time, and sums that are lost.
static void show_gains(const SumScores& before, const SumScores& after, std::size_t m) {
  std::size_t never = 0, gained = 0, lost = 0;
  for (std::size_t i = 0; i < before.right.size(); ++i) {
    never += before.right[i] == 0;
    gained += before.right[i] == 0 && after.right[i] > 0;
    lost += before.right[i] > 0 && after.right[i] == 0;
  }
  print_paragraph(fmt::format(
      "Of {} held-out sums, {} were never right in {} answers before; {} of these are right at "
      "least once now. Of the {} others, {} are never right now.",
      before.right.size(), never, m, gained, before.right.size() - never, lost));
}

static void show_some_answers(const Model& model, const std::vector<Sum>& sums,
                              std::uint64_t seed) {
  const std::vector<Sum> asked(sums.begin(), sums.begin() + 6);
  std::string line = "Answers to six held-out sums:";
  for (const Transcript& answer : answers_to(model, asked, sum_most, seed))
    line += "  " + sum_text(answer.ids);
  print_paragraph(line);
}

static void expect_rewards(const SumFlags& flags) {
  if (flags.rewards != "right" && flags.rewards != "hole")
    throw std::invalid_argument("--rewards: wanted right or hole, got " + flags.rewards);
  expect(flags.rate > 0, "--rate", "more than 0", flags.rate);
  expect(flags.kappa >= 0, "--kappa", "at least 0", flags.kappa);
}

int learn_rewards(const Program& program, const SumFlags& flags) {
  expect_rewards(flags);
  const bool hole = flags.rewards == "hole";
  const std::size_t steps = hole && !program.given("steps") ? 60 : flags.steps;
  const std::size_t m = hole ? 16 : 64;  // answers to each held-out sum
  const float rate = hole && !program.given("rate") ? 1e-3f : flags.rate;
  RewardOptions options{.step = {{rate, rate, 0, steps}, {.beta2 = 0.98f, .decay = 0}, 1},
                        .seed = program.seed() + 50};
  options.grpo.kappa = double(flags.kappa), options.grpo.share = share_named(flags.share);

  const SumsSplit sums = split_sums(200, 1);
  const auto right = [](const Sum& sum, Random&) { return sum_answer(sum); };
  RewardTrainer trainer(taught_sums(sums.train, flags.taught, program.seed(), right), sums.train,
                        hole ? begins_right : right_answer, options);
  print_section(hole ? "A reward that any beginning of the right answer gets"
                     : "Sums, learned from rewards for right answers");
  Table table({">steps", ">reward", ">equal groups", ">pass@1", ">pass@8",
               fmt::format(">pass@{}", m), ">tokens"});
  const auto [before, after] = train(trainer, steps, sums.held_out, m, table);
  table.print();
  fmt::print("\n");
  print_paragraph(fmt::format(
      "{} steps of {} sums with {} answers each, after {} steps of supervised fine-tuning. The "
      "columns from pass@1 on are of 200 held-out sums, {} answers each, judged by the right "
      "reward. Reward and equal groups are those of the step.",
      steps, options.questions, options.grpo.group, flags.taught, m));
  fmt::print("\n");
  show_gains(before, after, m);
  fmt::print("\n");
  show_some_answers(trainer.model(), sums.held_out, program.seed());
  return 0;
}

}  // namespace t2t
