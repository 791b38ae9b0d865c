// What the program does, by the flag that asks for it. A task opens the model's file, makes its
// cheap checks first, and returns the exit status. For main.cpp, here and in chapter 12.
#pragma once

#include <string>
#include <vector>

#include "10_pretrained/program/flags.hpp"
#include "program/program.hpp"
#include "program/tasks.hpp"

namespace t2t {

/// The tasks of this chapter. `tour` is done when no flag asks for another one, and of_model names
/// flags of a later chapter that say how a model is opened: all tasks that open one take them.
TaskTable pretrained_tasks(const Program& program, Flags& flags, const Task& tour,
                           const std::vector<std::string>& of_model = {});

}  // namespace t2t
