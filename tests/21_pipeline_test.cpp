// Chapter 21: a pipeline's schedules.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "21_pipeline/all_pipelines.hpp"
#include "support/refuses.hpp"

namespace t2t::pipeline_schedule_tests {

using namespace all_pipelines;

TEST_CASE("by hand: three stages and four micro-batches") {
  CHECK((operations_of(gpipe, 3, 1, 2) ==
         Operations{{forward, 0}, {forward, 1}, {backward, 0}, {backward, 1}}));
  CHECK((operations_of(one_f_one_b, 3, 0, 4) == Operations{{forward, 0},
                                                           {forward, 1},
                                                           {forward, 2},
                                                           {backward, 0},
                                                           {forward, 3},
                                                           {backward, 1},
                                                           {backward, 2},
                                                           {backward, 3}}));
  CHECK((operations_of(one_f_one_b, 3, 2, 2) ==
         Operations{{forward, 0}, {backward, 0}, {forward, 1}, {backward, 1}}));
  CHECK((operations_of(one_f_one_b, 3, 0, 1) == Operations{{forward, 0}, {backward, 0}}));
}

TEST_CASE("each micro-batch goes forward once and then backward once, both in order") {
  for_each_pipeline([](PipelineSchedule schedule, std::size_t p, std::size_t m) {
    for (std::size_t s = 0; s < p; ++s) {
      std::size_t forwards = 0, backwards = 0, wrong = 0;
      for (const auto& [pass, part] : operations_of(schedule, p, s, m)) {
        wrong += part != (pass == forward ? forwards++ : backwards++);
        wrong += backwards > forwards;
      }
      CHECK(wrong == 0);
      CHECK(forwards == m);
      CHECK(backwards == m);
    }
  });
}

TEST_CASE("GPipe has all micro-batches in flight, and 1F1B at most p - s") {
  for_each_pipeline([](PipelineSchedule schedule, std::size_t p, std::size_t m) {
    for (std::size_t s = 0; s < p; ++s) {
      const std::size_t want = schedule == gpipe ? m : std::min(m, p - s);
      CHECK(most_in_flight(schedule, p, s, m) == want);
      CHECK(counted_in_flight(operations_of(schedule, p, s, m)) == want);
    }
  });
}

/// A send or a receive of a stage, as stages/neighbours.hpp makes them.
struct Message {
  bool sends, forward;
  std::size_t number;  // of this stage, direction and way, from 0
};
static std::vector<Message> messages_of(const Operations& operations, std::size_t p,
                                        std::size_t s) {
  std::vector<Message> messages;
  for (const auto& [pass, part] : operations) {
    const bool is_forward = pass == forward;
    if (is_forward ? s > 0 : s + 1 < p) messages.push_back({false, is_forward, part});
    if (is_forward ? s + 1 < p : s > 0) messages.push_back({true, is_forward, part});
  }
  return messages;
}

/// Whether stages wait for ever when a send returns as soon as all messages before it in its
/// direction have been received (one may be under way), or also itself (none).
static bool hangs(PipelineSchedule schedule, std::size_t p, std::size_t m, std::size_t under_way) {
  std::vector<std::vector<Message>> left;
  for (std::size_t s = 0; s < p; ++s)
    left.push_back(messages_of(operations_of(schedule, p, s, m), p, s));
  std::vector<std::array<std::size_t, 2>> sent(p), received(p);  // by direction
  std::vector<std::size_t> next(p);
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t s = 0; s < p; ++s)
      while (next[s] < left[s].size()) {
        const auto& [sends, is_forward, number] = left[s][next[s]];
        const std::size_t other = sends == is_forward ? s + 1 : s - 1;
        // A send begins when the one before it has been received; with none under way, it ends only
        // when it has been received itself.
        if (sends && received[other][is_forward] < number) break;
        if (sends) sent[s][is_forward] = number + 1;
        if (sends ? received[other][is_forward] + under_way < number + 1
                  : sent[other][is_forward] <= number)
          break;
        if (!sends) received[s][is_forward] = number + 1;
        ++next[s], moved = true;
      }
  }
  for (std::size_t s = 0; s < p; ++s)
    if (next[s] < left[s].size()) return true;
  return false;
}

TEST_CASE("sends that wait for their receiver hang under 1F1B, and those that begin never do") {
  CHECK(hangs(one_f_one_b, 2, 2, 0));
  for_each_pipeline([](PipelineSchedule schedule, std::size_t p, std::size_t m) {
    CHECK(!hangs(schedule, p, m, 1));
    if (schedule == gpipe) CHECK(!hangs(schedule, p, m, 0));
  });
}

TEST_CASE("what is no schedule is refused by name") {
  CHECK(schedule_named("gpipe") == gpipe);
  CHECK(schedule_named("1f1b") == one_f_one_b);
  REFUSES(schedule_named("zb"), "--schedule: wanted gpipe or 1f1b, got zb");
  REFUSES(operations_of(gpipe, 0, 0, 1), "stages: wanted at least 1, got 0");
  REFUSES(operations_of(gpipe, 3, 3, 1), "stage: wanted below 3, got 3");
  REFUSES(operations_of(one_f_one_b, 3, 0, 0), "parts of a batch: wanted at least 1, got 0");
  REFUSES(most_in_flight(gpipe, 3, 0, 0), "parts of a batch: wanted at least 1, got 0");
}

}  // namespace t2t::pipeline_schedule_tests
