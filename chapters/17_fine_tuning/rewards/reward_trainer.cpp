#include "17_fine_tuning/rewards/reward_trainer.hpp"

#include <utility>

#include "17_fine_tuning/rewards/answers_to.hpp"
#include "17_fine_tuning/rewards/draw_answers.hpp"
#include "random.hpp"
#include "shapes.hpp"

namespace t2t {

/// Returns the options, once they are good. A trainer begins with this.
static RewardOptions checked_options(const RewardOptions& options, const std::vector<Sum>& sums) {
  expect(!sums.empty(), "sums to learn from", "at least 1", 0);
  expect(options.passes >= 1, "passes over the same answers", "at least 1", options.passes);
  expect(options.questions >= 1, "questions of a step", "at least 1", options.questions);
  return options;
}

static std::size_t answers_of_a_step(const RewardOptions& options) {
  return options.questions * options.grpo.group;
}

RewardTrainer::Reference::Reference(const Model& of, std::size_t B)
    : model(of.config(), of.weights()), passes(of.config(), B, sums_T) {}

RewardTrainer::RewardTrainer(Model model, const std::vector<Sum>& sums, SumReward reward,
                             const RewardOptions& options)
    : options_(checked_options(options, sums)),
      sums_(sums),
      reward_(std::move(reward)),
      reference_(options.grpo.kappa > 0
                     ? std::make_unique<Reference>(model, answers_of_a_step(options))
                     : nullptr),
      policy_(std::move(model), {answers_of_a_step(options), sums_T, options.step}),
      batch_(make_batch(answers_of_a_step(options), sums_T)) {}

/// Each sum comes `group` times, one after the other.
std::vector<Sum> RewardTrainer::next_sums() const {
  Random random(seed_of(SeedOf::step, options_.seed, 2 * steps_done_));
  std::vector<Sum> asked;
  for (std::size_t i = 0; i < options_.questions; ++i) {
    const Sum& sum = sums_[std::size_t(random.next_uniform() * double(sums_.size()))];
    asked.insert(asked.end(), options_.grpo.group, sum);
  }
  return asked;
}

/// The mean over learned targets of ln p − ln p_ref.
static double mean_moved(const Batch& batch, std::span<const double> now,
                         std::span<const double> reference) {
  double sum = 0;
  for (std::size_t i = 0; i < now.size(); ++i)
    if (batch.targets[i] != not_learned) sum += now[i] - reference[i];
  return sum / double(count_learned(batch.targets));
}

RewardReport RewardTrainer::step() {
  const std::vector<Sum> asked = next_sums();
  const std::uint64_t seed = seed_of(SeedOf::step, options_.seed, 2 * steps_done_ + 1);
  const std::vector<Transcript> answers = answers_to(model(), asked, options_.grpo.most, seed);
  fill(batch_, answers);
  std::vector<double> rewards;
  for (std::size_t i = 0; i < asked.size(); ++i)
    rewards.push_back(reward_(asked[i], answer_of(answers[i])));

  RewardReport report{.n = ++steps_done_, .equal = equal_groups(rewards, options_.grpo.group)};
  for (const double reward : rewards) report.reward += reward / double(rewards.size());
  report.length = double(count_learned(batch_.targets)) / double(answers.size());

  // The old ln p are those of the model that drew the answers, before its first step on them.
  const std::vector<double> old = policy_.log_p(batch_);
  std::vector<double> reference;
  if (reference_) {
    reference = reference_->passes.log_p(reference_->model, batch_);
    report.moved = mean_moved(batch_, old, reference);
  }
  std::vector<float> weights(batch_.targets.size());
  for (std::size_t pass = 0; pass < options_.passes; ++pass) {
    const std::vector<double> now = pass == 0 ? old : policy_.log_p(batch_);
    report.clipped = grpo_weights(batch_, {rewards, now, old, reference}, options_.grpo, weights);
    report.gradient_norm = policy_.step_on(batch_, weights).gradient_norm;
  }
  return report;
}

}  // namespace t2t
