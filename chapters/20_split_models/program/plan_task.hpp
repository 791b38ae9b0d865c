// The task --plan: the best layouts of a training, and the same formulas held against published
// ones.
#pragma once

#include <string>
#include <vector>

#include "program/program.hpp"

namespace t2t {

struct PlanFlags {
  std::string model, accelerator = "h100";
  std::size_t devices = 64, sequences = 2048, length = 4096;
  float memory = 0, bandwidth = 0, network = 0;  // in 10⁹ bytes; 0: the accelerator's own
};
void add_plan_flags(Program& program, PlanFlags& flags);
std::vector<std::string> plan_flags();

/// Prints the plan. Throws std::invalid_argument for an unknown model or accelerator, a figure
/// below 0 and sizes above a million, and std::runtime_error as plans does.
int show_plan(const PlanFlags& flags);

}  // namespace t2t
