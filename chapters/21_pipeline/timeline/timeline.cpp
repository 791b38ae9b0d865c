#include "21_pipeline/timeline/timeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <stdexcept>

#include "shapes.hpp"

namespace t2t {

using enum Operation::Pass;

Durations equal_durations(const std::vector<std::vector<Operation>>& stages, double forward_time,
                          double backward_time) {
  Durations durations;
  for (const std::vector<Operation>& operations : stages) {
    std::vector<double>& times = durations.emplace_back();
    for (const Operation& operation : operations)
      times.push_back(operation.pass == forward ? forward_time : backward_time);
  }
  return durations;
}

/// When an operation has ended on a stage, if it has.
static std::optional<double> end_of(const std::vector<Played>& done, Operation wanted) {
  const auto found = std::ranges::find(done, wanted, &Played::operation);
  return found == done.end() ? std::nullopt : std::optional(found->end);
}

/// When what an operation needs is there, if it has been computed: a forward pass needs the stage
/// before, a backward pass the stage after and, on the last one, the forward pass of its own.
static std::optional<double> ready_at(const Timeline& timeline, std::size_t stage,
                                      Operation operation) {
  const auto [pass, part] = operation;
  if (pass == forward) return stage == 0 ? 0.0 : end_of(timeline[stage - 1], operation);
  const std::optional<double> own = end_of(timeline[stage], {forward, part});
  if (!own || stage + 1 == timeline.size()) return own;
  const std::optional<double> after = end_of(timeline[stage + 1], operation);
  return after ? std::optional(std::max(*own, *after)) : std::nullopt;
}

/// Plays a stage's operations until one has to wait. Returns whether there was one to play.
static bool play_stage(Timeline& timeline, std::size_t stage,
                       const std::vector<Operation>& operations,
                       const std::vector<double>& durations) {
  std::vector<Played>& done = timeline[stage];
  const std::size_t before = done.size();
  while (done.size() < operations.size()) {
    const Operation next = operations[done.size()];
    const std::optional<double> ready = ready_at(timeline, stage, next);
    if (!ready) break;
    const double begin = std::max(*ready, done.empty() ? 0 : done.back().end);
    done.push_back({next, begin, begin + durations[done.size()]});
  }
  return done.size() > before;
}

Timeline played(const std::vector<std::vector<Operation>>& stages, const Durations& durations) {
  expect(durations.size() == stages.size(), "stages with durations",
         fmt::format("{}", stages.size()), durations.size());
  for (std::size_t s = 0; s < stages.size(); ++s)
    expect(durations[s].size() == stages[s].size(), "durations of a stage",
           fmt::format("{}", stages[s].size()), durations[s].size());
  Timeline timeline(stages.size());
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t s = 0; s < stages.size(); ++s)
      moved = play_stage(timeline, s, stages[s], durations[s]) || moved;
  }
  for (std::size_t s = 0; s < stages.size(); ++s)
    if (const std::size_t done = timeline[s].size(); done < stages[s].size()) {
      const auto [pass, part] = stages[s][done];
      throw std::runtime_error(fmt::format("stage {} waits for ever before {} {}", s,
                                           pass == forward ? "forward" : "backward", part));
    }
  return timeline;
}

double first_begin(const Timeline& timeline) {
  double first = std::numeric_limits<double>::infinity();
  for (const std::vector<Played>& stage : timeline)
    for (const Played& one : stage) first = std::min(first, one.begin);
  return first;
}

double length_of(const Timeline& timeline) {
  double last = -std::numeric_limits<double>::infinity();
  for (const std::vector<Played>& stage : timeline)
    for (const Played& one : stage) last = std::max(last, one.end);
  return last - first_begin(timeline);
}

double idle_share(const Timeline& timeline) {
  double busy = 0;
  for (const std::vector<Played>& stage : timeline)
    for (const Played& one : stage) busy += one.end - one.begin;
  return 1 - busy / (double(timeline.size()) * length_of(timeline));
}

std::vector<std::string> drawn(const Timeline& timeline, std::size_t columns) {
  const double start = first_begin(timeline), column = length_of(timeline) / double(columns);
  std::vector<std::string> lines;
  for (const std::vector<Played>& stage : timeline) {
    std::string& line = lines.emplace_back(columns, '.');
    for (const auto& [operation, begin, end] : stage)
      for (std::size_t c = 0; c < columns; ++c) {
        const double middle = start + (double(c) + 0.5) * column;
        if (middle < begin || middle >= end) continue;
        line[c] = operation.pass == forward ? char('0' + operation.part % 10)
                                            : char('a' + operation.part % 26);
      }
  }
  return lines;
}

}  // namespace t2t
