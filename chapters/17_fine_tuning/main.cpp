// Fine-tunes: a small model learns a few lines through adapters of several ranks. With --fine-tune
// a real model learns the answers to questions; with --preferences and --rewards a small one learns
// sums from pairs of answers and from rewards.
#include "13_training/program/chosen_text.hpp"
#include "17_fine_tuning/program/lora_rewards.hpp"
#include "17_fine_tuning/program/lora_task.hpp"
#include "17_fine_tuning/program/sums_tasks.hpp"
#include "17_fine_tuning/shows/show_adapter.hpp"
#include "17_fine_tuning/shows/show_weights.hpp"
#include "program/program.hpp"
#include "program/solutions.hpp"

using namespace t2t;

int main(int argc, char** argv) {
  LoraFlags flags;
  SumFlags sums;
  LoraRewardFlags lora_rewards;
  Program program(
      "17_fine_tuning",
      "Teaches a trained model something more, with LoRA: two thin matrices are trained "
      "for each of its own. Without flags: how many parameters are trained, by rank, "
      "what a small model learns and forgets, and what learning from preferences and from rewards "
      "does to each token.");
  add_flags(program, flags);
  add_flags(program, sums);
  add_flags(program, lora_rewards);
  program.has_solutions(solutions);
  const Task tour = {"", {"seed", "save"}, [&] {
                       show_adapter_sizes();
                       show_token_weights();
                       show_kl_estimates();
                       show_pass_at_k();
                       program.save("losses", show_small_adapters(text_of({}), program.seed()));
                       return 0;
                     }};
  return program.run_tasks(
      argc, argv,
      {{fine_tune_task(program, flags), preferences_task(program, sums),
        rewards_task(program, sums), lora_rewards_task(program, lora_rewards, flags, sums), tour}});
}
