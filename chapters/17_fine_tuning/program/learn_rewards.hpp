// The task --rewards.
#pragma once

#include "17_fine_tuning/program/sums_tasks.hpp"

namespace t2t {

/// Throws std::invalid_argument, naming the flag, for a value that is not known or out of range.
int learn_rewards(const Program& program, const SumFlags& flags);

}  // namespace t2t
