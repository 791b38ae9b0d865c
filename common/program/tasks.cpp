#include "program/tasks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace t2t {

static bool contains(const std::vector<std::string>& flags, const std::string& flag) {
  return std::ranges::find(flags, flag) != flags.end();
}

/// The first of the flags that the task has no use for, or "".
static std::string not_taken(const Task& task, const std::vector<std::string>& given) {
  for (const std::string& flag : given)
    if (flag != task.flag && !contains(task.takes, flag)) return flag;
  return {};
}

static bool asks_for_a_task(const TaskTable& table, const std::string& flag) {
  return std::ranges::any_of(table.tasks, [&](const Task& task) { return task.flag == flag; });
}

/// "--chat or --bench": the flags of the tasks that take this one.
static std::string tasks_with(const TaskTable& table, const std::string& flag) {
  std::string text;
  for (const Task& task : table.tasks)
    if (!task.flag.empty() && contains(task.takes, flag))
      text += (text.empty() ? "--" : " or --") + task.flag;
  return text;
}

static void expect_apart(const TaskTable& table, const std::vector<std::string>& given) {
  for (const auto& [a, b] : table.apart)
    if (contains(given, a) && contains(given, b))
      throw std::invalid_argument(fmt::format("--{} and --{}: wanted one of them at a time", a, b));
}

/// Why the task can't be done with this flag.
static std::string refusal(const TaskTable& table, const Task& task, const std::string& flag) {
  const std::string others = tasks_with(table, flag);
  if (task.flag.empty() && others.empty()) return fmt::format("--{}: has no use here", flag);
  if (task.flag.empty()) return fmt::format("--{}: wanted {} too", flag, others);
  if (asks_for_a_task(table, flag))
    return fmt::format("--{} and --{}: wanted one of them at a time", task.flag, flag);
  return fmt::format("--{}: does not take --{}{}", task.flag, flag,
                     others.empty() ? "" : ", which goes with " + others);
}

const Task& chosen_task(const TaskTable& table, const std::vector<std::string>& given) {
  expect_apart(table, given);
  for (const Task& task : table.tasks) {
    if (task.flag.empty() || !contains(given, task.flag)) continue;
    const std::string flag = not_taken(task, given);
    if (!flag.empty()) throw std::invalid_argument(refusal(table, task, flag));
    return task;
  }
  const Task* last = nullptr;
  for (const Task& task : table.tasks) {
    if (!task.flag.empty()) continue;
    if (not_taken(task, given).empty()) return task;
    last = &task;
  }
  if (!last) throw std::invalid_argument("wanted a flag that says what to do");
  throw std::invalid_argument(refusal(table, *last, not_taken(*last, given)));
}

std::vector<std::string> joined(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace t2t
