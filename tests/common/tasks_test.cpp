// Which task a program's flags ask for, and which flags it refuses.
#include "program/tasks.hpp"

#include <doctest/doctest.h>

#include <csignal>
#include <string>
#include <vector>

#include "program/stop_asked.hpp"
#include "support/refuses.hpp"

namespace t2t::tasks_test {

static TaskTable table() {
  return {{{"chat", {"model", "system", "tokens"}, [] { return 1; }},
           {"logits", {"model", "prompt", "ids", "trace"}, [] { return 2; }},
           {"trace", {"model", "prompt", "ids"}, [] { return 3; }},
           {"prompt", {"model", "tokens"}, [] { return 4; }},
           {"", {"model", "seed"}, [] { return 5; }},
           {"", {"model", "tokens"}, [] { return 6; }}},
          {{"prompt", "ids"}}};
}

static int chosen(const std::vector<std::string>& given) {
  const TaskTable tasks = table();
  return chosen_task(tasks, given).run();
}

TEST_CASE("a flag asks for its task, and the task takes its flags") {
  CHECK(chosen({"chat"}) == 1);
  CHECK(chosen({"tokens", "chat", "model"}) == 1);
  CHECK(chosen({"prompt", "trace"}) == 3);
  CHECK(chosen({"trace", "logits", "ids"}) == 2);  // one task takes the other's flag
  CHECK(chosen({"prompt", "tokens"}) == 4);
}

TEST_CASE("without such a flag, the first task is done that takes what is given") {
  CHECK(chosen({}) == 5);
  CHECK(chosen({"seed", "model"}) == 5);
  CHECK(chosen({"tokens"}) == 6);
}

TEST_CASE("a flag that the task does not take is refused, with what it goes with") {
  REFUSES(chosen({"chat", "logits"}), "--chat and --logits: wanted one of them at a time");
  REFUSES(chosen({"prompt", "chat"}), "--chat and --prompt: wanted one of them at a time");
  REFUSES(chosen({"logits", "prompt", "ids"}), "--prompt and --ids: wanted one of them at a time");
  REFUSES(chosen({"prompt", "system"}), "--prompt: does not take --system, which goes with --chat");
  REFUSES(chosen({"trace", "tokens"}),
          "--trace: does not take --tokens, which goes with --chat or --prompt");
  REFUSES(chosen({"trace", "seed"}), "--trace: does not take --seed");
  REFUSES(chosen({"system"}), "--system: wanted --chat too");
  REFUSES(chosen({"ids"}), "--ids: wanted --logits or --trace too");
  REFUSES(chosen({"save"}), "--save: has no use here");
  TaskTable no_tour = table();
  std::erase_if(no_tour.tasks, [](const Task& task) { return task.flag.empty(); });
  REFUSES(chosen_task(no_tour, {}), "wanted a flag that says what to do");
}

TEST_CASE("a request to end is noted once, and who received it before receives it again") {
  static int received = 0;
  const auto before = std::signal(SIGTERM, [](int) { ++received; });
  {
    const StopAsked stop{SIGTERM};
    CHECK(!StopAsked::asked());
    std::raise(SIGTERM);
    CHECK(StopAsked::asked());
  }
  CHECK(received == 0);
  std::raise(SIGTERM);
  CHECK(received == 1);
  const StopAsked again{SIGTERM};
  CHECK(!StopAsked::asked());
  std::signal(SIGTERM, before);
}

}  // namespace t2t::tasks_test
