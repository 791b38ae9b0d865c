// --run and --resume: training that can be left alone. For main.cpp.
#pragma once

#include <string>
#include <vector>

#include "09_language_model/config.hpp"
#include "13_training/program/chosen_text.hpp"
#include "13_training/trainer/trainer.hpp"
#include "program/program.hpp"
#include "program/tasks.hpp"

namespace t2t {

struct RunFlags {
  std::string run, resume;
  TextFlags text;
  std::size_t vocabulary = 0;  // 0: bytes
  Sizes sizes{.C = 192, .L = 4, .H = 6, .G = 3, .T_max = 192};
  bool own_head = false;
  TrainingOptions options{.B = 16, .T = 0, .schedule = {2e-3f, 2e-4f, 50, 600}};
  std::size_t every = 100;  // steps from one checkpoint to the next
};

void add_flags(Program& program, RunFlags& flags);

/// Throws std::invalid_argument for values that no run can use.
void expect_flags(const Program& program, const RunFlags& flags);

/// --run, and --resume, which takes its settings from the folder.
std::vector<Task> run_tasks(const Program& program, const RunFlags& flags);

}  // namespace t2t
