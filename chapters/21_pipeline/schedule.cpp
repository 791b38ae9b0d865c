#include "21_pipeline/schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "shapes.hpp"

namespace t2t {

using enum Operation::Pass;

PipelineSchedule schedule_named(const std::string& name) {
  if (name == "gpipe") return PipelineSchedule::gpipe;
  if (name == "1f1b") return PipelineSchedule::one_f_one_b;
  throw std::invalid_argument(fmt::format("--schedule: wanted gpipe or 1f1b, got {}", name));
}

static void expect_stage(std::size_t stages, std::size_t stage, std::size_t parts) {
  expect(stages >= 1, "stages", "at least 1", stages);
  expect(stage < stages, "stage", fmt::format("below {}", stages), stage);
  expect(parts >= 1, "parts of a batch", "at least 1", parts);
}

std::vector<Operation> operations_of(PipelineSchedule schedule, std::size_t stages,
                                     std::size_t stage, std::size_t parts) {
  expect_stage(stages, stage, parts);
  // What a stage computes before the first gradient can have come back from the last stage.
  const std::size_t warm_up =
      schedule == PipelineSchedule::gpipe ? parts : std::min(parts, stages - 1 - stage);
  std::vector<Operation> operations;
  for (std::size_t part = 0; part < warm_up; ++part) operations.push_back({forward, part});
  for (std::size_t part = warm_up; part < parts; ++part) {
    operations.push_back({forward, part});
    operations.push_back({backward, part - warm_up});
  }
  for (std::size_t part = parts - warm_up; part < parts; ++part)
    operations.push_back({backward, part});
  return operations;
}

std::size_t most_in_flight(PipelineSchedule schedule, std::size_t stages, std::size_t stage,
                           std::size_t parts) {
  expect_stage(stages, stage, parts);
  return schedule == PipelineSchedule::gpipe ? parts : std::min(parts, stages - stage);
}

std::size_t counted_in_flight(const std::vector<Operation>& operations) {
  std::size_t now = 0, most = 0;
  for (const Operation& operation : operations) {
    now = operation.pass == forward ? now + 1 : now - 1;
    most = std::max(most, now);
  }
  return most;
}

}  // namespace t2t
