// --preferences and --rewards: a small model that was taught some sums learns from pairs of answers
// or from rewards, shown before and after. For main.cpp.
#pragma once

#include <string>

#include "program/program.hpp"
#include "program/tasks.hpp"

namespace t2t {

struct SumFlags {
  std::string preferences;         // formats or answers
  std::string rewards;             // right or hole
  std::size_t steps = 200;         // of learning from either
  std::size_t taught = 240;        // steps of supervised fine-tuning before
  float rate = 3e-4f;              // of the steps of learning from either
  float beta = 0.1f, sft = 0;      // of DPO
  float kappa = 0;                 // of GRPO
  std::string share = "constant";  // own_length, all_tokens or constant
};

void add_flags(Program& program, SumFlags& flags);

/// --preferences, and --rewards.
Task preferences_task(const Program& program, const SumFlags& flags);
Task rewards_task(const Program& program, const SumFlags& flags);

}  // namespace t2t
