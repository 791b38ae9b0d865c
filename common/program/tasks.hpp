// A program's tasks: what it does, by the flag that asks for it. A program does one task at a time,
// and a flag that this task does not take is refused rather than ignored.
//
//   const TaskTable table = {{{"info", {"model"}, list_file},
//                             {"chat", {"model", "system", "tokens"}, chat},
//                             {"", {"model", "seed"}, tour}}};
//   return program.run_tasks(argc, argv, table);
//
// A table that begins with another chapter's, or ends with it, does its tasks too. A task names
// flags of its own chapter and of lower ones only.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace t2t {

struct Task {
  std::string flag;  // that asks for it, without "--"; "": done when no flag asks for a task
  std::vector<std::string> takes;  // the other flags that it uses
  std::function<int()> run;        // returns the exit status
};

struct TaskTable {
  std::vector<Task> tasks;
  /// Flags that exclude one another wherever both are taken, such as two texts to read.
  std::vector<std::pair<std::string, std::string>> apart = {};
  /// Checks the values of the flags; called once a task is chosen, before any file is touched.
  std::function<void()> check = {};
};

/// The task that these flags ask for: the first whose flag is among them. Several may be given if
/// that one takes the others. When none is, it is the first task without a flag that takes all of
/// them. Throws std::invalid_argument, with both flags, when two don't go together, and with the
/// flag that is missing when one has no use alone.
const Task& chosen_task(const TaskTable& table, const std::vector<std::string>& given);

/// {a…, b…}: for lists of flags.
std::vector<std::string> joined(std::vector<std::string> a, const std::vector<std::string>& b);

}  // namespace t2t
