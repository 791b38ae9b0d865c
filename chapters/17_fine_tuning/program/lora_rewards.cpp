#include "17_fine_tuning/program/lora_rewards.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <vector>

#include "10_pretrained/check/perplexity.hpp"
#include "10_pretrained/model/load_model.hpp"
#include "10_pretrained/program/open_session.hpp"
#include "17_fine_tuning/preferences/lora_policy.hpp"
#include "17_fine_tuning/rewards/answers_to.hpp"
#include "17_fine_tuning/rewards/draw_answers.hpp"
#include "17_fine_tuning/rewards/grpo.hpp"
#include "17_fine_tuning/rewards/pass_at_k.hpp"
#include "files/files.hpp"
#include "program/print.hpp"
#include "program/progress.hpp"
#include "random.hpp"
#include "shapes.hpp"

namespace t2t {

static constexpr std::size_t questions = 8, group = 8;    // of a step
static constexpr std::size_t most = 4;                    // tokens of an answer, its end included
static constexpr std::size_t asked_held_out = 40, m = 8;  // held-out sums, answers to each of them

/// Sums as the model's own tokens: two examples show it how an answer looks and where it ends.
class TokenSums {
 public:
  explicit TokenSums(const Bpe& bpe) : bpe_(bpe) {
    const std::vector<int> end = bpe.encode("\n");
    if (end.size() != 1)
      throw std::runtime_error("the model's vocabulary has no token for the end of a line");
    end_ = end[0];
  }

  std::vector<int> prompt(const Sum& sum) const {
    std::vector<int> ids = bpe_.encode(fmt::format("12+9=21\n40+38=78\n{}+{}=", sum.a, sum.b));
    if (const auto first = bpe_.first()) ids.insert(ids.begin(), *first);
    return ids;
  }
  bool is_right(const Sum& sum, const Transcript& answer) const {
    return bpe_.decode(answer_of(answer)) == sum_answer(sum) + "\n";
  }
  /// An answer to each sum, drawn from the model.
  std::vector<Transcript> answers(const Model& model, const std::vector<Sum>& sums,
                                  std::uint64_t seed) const {
    std::vector<std::vector<int>> prompts;
    for (const Sum& sum : sums) prompts.push_back(prompt(sum));
    return draw_answers(model, prompts, {end_, most, seed});
  }
  std::size_t longest() const { return prompt({99, 99}).size() + most; }

 private:
  const Bpe& bpe_;
  int end_;
};

struct TokenScores {
  double pass_1, pass_8;
};

static TokenScores score(const Model& model, const TokenSums& task, const std::vector<Sum>& sums) {
  const std::vector<Transcript> answers = task.answers(model, repeated(sums, m), 9);
  std::vector<std::size_t> right(sums.size());
  for (std::size_t i = 0; i < answers.size(); ++i)
    right[i / m] += task.is_right(sums[i / m], answers[i]);
  return {mean_pass_at_k(m, right, 1), mean_pass_at_k(m, right, 8)};
}

/// The rewards of a step's answers, and how many groups have equal ones.
struct StepRewards {
  double mean, equal;
};

/// One step of GRPO: some sums, a group of answers to each, and a step on these answers. They are
/// learned once, while the model is still the one that drew them: all ratios are 1, for any ln p.
static StepRewards step_on_answers(LoraPolicy& policy, const TokenSums& task,
                                   const std::vector<Sum>& sums, std::uint64_t seed, Batch& batch) {
  Random random(seed);
  std::vector<Sum> asked;
  for (std::size_t i = 0; i < questions; ++i)
    asked.insert(asked.end(), group,
                 sums[std::size_t(random.next_uniform() * double(sums.size()))]);
  const std::vector<Transcript> answers = task.answers(policy.model(), asked, seed + 1);
  fill(batch, answers);
  std::vector<double> rewards;
  for (std::size_t i = 0; i < asked.size(); ++i)
    rewards.push_back(task.is_right(asked[i], answers[i]));

  std::vector<float> weights(batch.targets.size());
  const std::vector<double> same(batch.targets.size());
  grpo_weights(batch, {rewards, same, same, {}}, {.group = group, .most = most}, weights);
  policy.step_on(batch, weights);
  StepRewards of_step{0, equal_groups(rewards, group)};
  for (const double reward : rewards) of_step.mean += reward / double(rewards.size());
  return of_step;
}

/// All steps, with a line of the table before the first, after some and after the last.
static void train(LoraPolicy& policy, const TokenSums& task, const SumsSplit& sums,
                  std::size_t steps, std::uint64_t seed, Table& table) {
  const auto add = [&](std::size_t n, const std::string& reward, const std::string& equal) {
    const TokenScores scores = score(policy.model(), task, sums.held_out);
    table.add({fmt::format("{}", n), reward, equal, fmt::format("{:.2f}", scores.pass_1),
               fmt::format("{:.2f}", scores.pass_8)});
  };
  add(0, "", "");
  Batch batch = make_batch(questions * group, task.longest() - 1);
  const std::size_t every = std::max<std::size_t>(1, steps / 4);
  for (std::size_t n = 1; n <= steps; ++n) {
    const std::uint64_t seed_here = seed_of(SeedOf::step, seed, 2 * n);
    const StepRewards step = step_on_answers(policy, task, sums.train, seed_here, batch);
    show_progress(fmt::format("{}  reward {:.2f} ", steps_done(n, steps), step.mean));
    if (n % every == 0 || n == steps)
      add(n, fmt::format("{:.2f}", step.mean), fmt::format("{:.2f}", step.equal));
  }
  show_progress("");
}

static int learn_sums(const Program& program, const LoraRewardFlags& flags, const LoraFlags& lora,
                      const SumFlags& sum_flags) {
  const float rate = program.given("lora-rate") ? lora.rate : 5e-4f;
  const std::size_t steps = program.given("steps") ? sum_flags.steps : 30;
  expect(rate > 0, "--lora-rate", "more than 0", rate);
  expect_writable(flags.adapter);
  const GgufFile file = open_model(lora.model);
  const Bpe bpe = read_tokenizer(file);
  const TokenSums task(bpe);
  const SumsSplit sums = split_sums(asked_held_out, 1);
  LoraOptions options = lora_options(lora);
  options.B = questions * group, options.T = task.longest() - 1;
  options.schedule = {rate, rate, 0, steps};
  options.seed = program.seed();
  LoraPolicy policy(read_model(file), options);

  print_section("A real model learns sums from rewards");
  const std::vector<int> other = ids_to_score(bpe, lora.other);
  const auto perplexity = [&] { return perplexity_of(other, policy.model(), 256).perplexity; };
  const double before = perplexity();
  Table table({">steps", ">reward", ">equal groups", ">pass@1", ">pass@8"});
  train(policy, task, sums, steps, program.seed(), table);
  table.print();
  fmt::print("\n");
  print_paragraph(fmt::format(
      "{} steps of {} sums with {} answers each; only A and B of rank {} are trained, {} "
      "parameters. pass@1 and pass@8 are those of {} held-out sums, {} answers each. The "
      "perplexity of other text was {:.2f} before and is {:.2f} now.",
      steps, questions, group, lora.rank, with_commas(policy.trainer().parameters()),
      sums.held_out.size(), m, before, perplexity()));
  save_adapter(flags.adapter, policy.trainer().adapter());
  return 0;
}

void add_flags(Program& program, LoraRewardFlags& flags) {
  program.output("lora-rewards", flags.adapter,
                 "teach a model sums from rewards alone, and write the LoRA adapter to FILE");
}

Task lora_rewards_task(const Program& program, const LoraRewardFlags& flags, const LoraFlags& lora,
                       const SumFlags& sums) {
  return {"lora-rewards",
          {"model", "other", "matrices", "rank", "lora-rate", "steps", "seed"},
          [&] { return learn_sums(program, flags, lora, sums); }};
}

}  // namespace t2t
