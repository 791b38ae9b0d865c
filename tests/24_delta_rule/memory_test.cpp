// What must be true of the memories that the page compares.
#include <doctest/doctest.h>

#include "24_delta_rule/memory/recall.hpp"
#include "support/refuses.hpp"

namespace t2t::recall_test {

TEST_CASE("few keys are always found, and softmax finds as many as there are") {
  for (const Memory memory : {Memory::linear, Memory::delta, Memory::softmax})
    CHECK(recall_share(memory, {.keys = 2}, 1) > 0.98);
  CHECK(recall_share(Memory::softmax, {.keys = 128}, 1) > 0.99);
}

TEST_CASE("of many keys written once, linear attention finds more than the delta rule") {
  for (const std::uint64_t seed : {1, 2, 3}) {
    CAPTURE(seed);
    const double linear = recall_share(Memory::linear, {.keys = 64}, seed),
                 delta = recall_share(Memory::delta, {.keys = 64}, seed);
    CHECK(linear > delta + 0.15);
    CHECK(linear < 0.95);
    CHECK(delta > 0.3);
  }
}

TEST_CASE("of keys that are rewritten, only the delta rule finds the last value") {
  for (const std::uint64_t seed : {1, 2, 3}) {
    CAPTURE(seed);
    CHECK(recall_share(Memory::delta, {.keys = 8, .times = 4}, seed) > 0.9);
    CHECK(recall_share(Memory::linear, {.keys = 8, .times = 4}, seed) < 0.5);
    CHECK(recall_share(Memory::softmax, {.keys = 8, .times = 4}, seed) < 0.5);
  }
}

TEST_CASE("a seed's keys are always the same, and a task without any is refused") {
  const RecallTask task{.keys = 50};
  CHECK(recall_share(Memory::delta, task, 7) == recall_share(Memory::delta, task, 7));
  REFUSES(recall_share(Memory::delta, {.keys = 0}, 7),
          "smallest number of the task: wanted at least 1, got 0");
}

}  // namespace t2t::recall_test
