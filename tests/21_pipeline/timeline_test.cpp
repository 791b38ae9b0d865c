// Chapter 21: a clock that plays schedules, and its drawings.
#include "21_pipeline/timeline/timeline.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "21_pipeline/all_pipelines.hpp"
#include "21_pipeline/timeline/timeline_svg.hpp"
#include "support/refuses.hpp"

namespace t2t::pipeline_timeline_tests {

using namespace all_pipelines;

/// How many operations begin before what they need has ended, on their stage or on another.
static std::size_t too_early(const Timeline& timeline) {
  const auto end_of = [&](std::size_t stage, Operation operation) {
    for (const Played& one : timeline[stage])
      if (one.operation == operation) return one.end;
    return INFINITY + 0.0;
  };
  std::size_t wrong = 0;
  for (std::size_t s = 0; s < timeline.size(); ++s)
    for (std::size_t i = 0; i < timeline[s].size(); ++i) {
      const auto& [operation, begin, end] = timeline[s][i];
      const bool back = operation.pass == backward;
      if (i > 0) wrong += !(begin >= timeline[s][i - 1].end);
      if (back) wrong += !(begin >= end_of(s, {forward, operation.part}));
      if (back && s + 1 < timeline.size()) wrong += !(begin >= end_of(s + 1, operation));
      if (!back && s > 0) wrong += !(begin >= end_of(s - 1, operation));
    }
  return wrong;
}

TEST_CASE("no stage waits for ever, and none computes before it can") {
  for_each_pipeline([](PipelineSchedule schedule, std::size_t p, std::size_t m) {
    const std::vector<Operations> stages = all_stages(schedule, p, m);
    Durations uneven = equal_durations(stages, 1, 2);
    for (std::size_t s = 0; s < p; ++s)
      for (std::size_t i = 0; i < uneven[s].size(); ++i)
        uneven[s][i] += double((7 * s + 3 * i * i) % 5);
    const Timeline timeline = played(stages, uneven);
    CHECK(too_early(timeline) == 0);
    for (std::size_t s = 0; s < p; ++s) CHECK(timeline[s].size() == 2 * m);
  });
}

TEST_CASE("with equal times, both schedules are idle for (p - 1)/(m + p - 1) of the time") {
  for_each_pipeline([](PipelineSchedule schedule, std::size_t p, std::size_t m) {
    const std::vector<Operations> stages = all_stages(schedule, p, m);
    for (const double backward_time : {1, 2, 3}) {
      const Timeline timeline = played(stages, equal_durations(stages, 1, backward_time));
      CHECK(length_of(timeline) == double(m + p - 1) * (1 + backward_time));
      const double want = double(p - 1) / double(m + p - 1);
      CHECK(std::abs(idle_share(timeline) - want) <= 0x1p-50);
      CHECK(idle_share(p, m) == want);
    }
  });
}

TEST_CASE("by hand: the claim. Four stages and eight micro-batches are idle 3/11, not 3/8") {
  const std::vector<Operations> stages = all_stages(gpipe, 4, 8);
  const Timeline timeline = played(stages, equal_durations(stages, 1, 2));
  const double length = length_of(timeline), useful = 8 * 3;
  CHECK(length == 33);
  CHECK((length - useful) / length == idle_share(4, 8));
  CHECK((length - useful) / useful == 3.0 / 8);
}

TEST_CASE("by hand: two stages, two micro-batches, and a slow second stage") {
  const std::vector<Operations> stages = all_stages(gpipe, 2, 2);
  const Timeline even = played(stages, equal_durations(stages, 1, 1));
  CHECK(drawn(even, 6) == std::vector<std::string>{"01..ab", ".01ab."});
  CHECK(drawn(even, 12) == std::vector<std::string>{"0011....aabb", "..0011aabb.."});
  // Forward 0 … 1 … 2 on stage 0; 1 … 3 … 5 on stage 1, backward 5 … 6 … 7; stage 0 6 … 7 … 8.
  const Timeline slow = played(stages, {{1, 1, 1, 1}, {2, 2, 1, 1}});
  CHECK(drawn(slow, 8) == std::vector<std::string>{"01....ab", ".0011ab."});
  CHECK(idle_share(slow) == 1 - 10.0 / 16);
}

TEST_CASE("by hand: a last stage that works 1.13 times as long sets the beat") {
  for (const PipelineSchedule schedule : {gpipe, one_f_one_b}) {
    const std::vector<Operations> stages = all_stages(schedule, 4, 8);
    Durations durations = equal_durations(stages, 1, 2);
    for (std::size_t i = 0; i < stages[3].size(); ++i)
      if (stages[3][i].pass == forward) durations[3][i] = 1.39;
    const Timeline timeline = played(stages, durations);
    const double beats = 8 * 1.13 + 3, work = 8 * (3 + 1.13) / 4;
    CHECK(std::abs(length_of(timeline) / 3 - beats) <= 1e-12);
    CHECK(std::abs(idle_share(timeline) - (1 - work / beats)) <= 1e-12);
  }
}

TEST_CASE("a picture has a box for each operation, as wide as it is long") {
  const std::vector<Operations> stages = all_stages(one_f_one_b, 3, 2);
  const std::string svg = svg_of(played(stages, equal_durations(stages, 1, 2)));
  const auto count = [&](const std::string& what) {
    std::size_t n = 0;
    for (std::size_t at = svg.find(what); at != svg.npos; at = svg.find(what, at + 1)) ++n;
    return n;
  };
  CHECK(count("<rect") == 12);
  CHECK(count("width=\"55\"") == 6);   // 660 for twelve units of time
  CHECK(count("width=\"110\"") == 6);  // a backward pass takes two
}

TEST_CASE("stages that wait for each other are an error that names one of them") {
  const Operations first = {{forward, 0}, {backward, 0}, {forward, 1}, {backward, 1}};
  const Operations last = {{forward, 1}, {forward, 0}, {backward, 0}, {backward, 1}};
  const std::vector<Operations> stages = {first, last};
  REFUSES_AS(played(stages, equal_durations(stages, 1, 1)),
             "stage 0 waits for ever before backward 0", std::runtime_error);
}

TEST_CASE("durations that are not as many as operations are refused by name") {
  const std::vector<Operations> stages = all_stages(gpipe, 2, 1);
  REFUSES(played(stages, {{1, 1}}), "stages with durations: wanted 2, got 1");
  REFUSES(played(stages, {{1, 1}, {1}}), "durations of a stage: wanted 2, got 1");
}

}  // namespace t2t::pipeline_timeline_tests
