// --lora-rewards: a real model learns sums from rewards alone, through a LoRA adapter. For
// main.cpp.
#pragma once

#include <string>

#include "17_fine_tuning/program/lora_task.hpp"
#include "17_fine_tuning/program/sums_tasks.hpp"

namespace t2t {

struct LoraRewardFlags {
  std::string adapter;  // the file to write
};

void add_flags(Program& program, LoraRewardFlags& flags);

/// --lora-rewards, which also reads flags of the tasks --fine-tune and --rewards.
Task lora_rewards_task(const Program& program, const LoraRewardFlags& flags, const LoraFlags& lora,
                       const SumFlags& sums);

}  // namespace t2t
