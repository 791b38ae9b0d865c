#include "17_fine_tuning/program/sums_tasks.hpp"

#include "17_fine_tuning/program/learn_preferences.hpp"
#include "17_fine_tuning/program/learn_rewards.hpp"

namespace t2t {

void add_flags(Program& program, SumFlags& flags) {
  program.word("preferences", flags.preferences,
               "learn from pairs of answers: formats (62 rather than 062), or answers (a right one "
               "rather than a wrong one)");
  program.word("rewards", flags.rewards,
               "learn sums from rewards: right (the sum is right), or hole (a reward with a "
               "mistake)");
  program.size("steps", flags.steps,
               "steps of learning from preferences or rewards; by default 30 for formats and 60 "
               "for hole");
  program.size("taught", flags.taught,
               "steps of supervised fine-tuning before them; by default 900 for formats");
  program.number("rate", flags.rate, "their learning rate; by default 0.001 for hole");
  program.number("beta", flags.beta, "beta of DPO");
  program.number("sft", flags.sft, "share of the chosen answers' own loss in DPO's");
  program.number("kappa", flags.kappa, "how strongly GRPO keeps the model near its start");
  program.word("share", flags.share,
               "what divides the sum over tokens: own_length (GRPO), all_tokens (DAPO) or constant "
               "(Dr. GRPO)");
}

Task preferences_task(const Program& program, const SumFlags& flags) {
  return {"preferences", {"steps", "taught", "rate", "beta", "sft", "seed"}, [&] {
            return learn_preferences(program, flags);
          }};
}

Task rewards_task(const Program& program, const SumFlags& flags) {
  return {"rewards", {"steps", "taught", "rate", "kappa", "share", "seed"}, [&] {
            return learn_rewards(program, flags);
          }};
}

}  // namespace t2t
