#include "21_pipeline/shows/show_times.hpp"

#include <fmt/format.h>

#include <thread>

#include "19_ranks/collectives/values.hpp"
#include "21_pipeline/shows/print_timeline.hpp"
#include "21_pipeline/timeline/timeline_svg.hpp"
#include "program/print.hpp"
#include "statistics.hpp"

namespace t2t {

/// The values of every rank, [ranks][values]; each has equally many.
static Durations values_of_all(const Communicator& world, const std::vector<double>& own) {
  std::vector<double> all(world.size * own.size());
  std::copy(own.begin(), own.end(), all.begin() + std::ptrdiff_t(world.rank * own.size()));
  all = sum_of_values(world, all);
  Durations each;
  for (std::size_t r = 0; r < world.size; ++r)
    each.emplace_back(all.begin() + std::ptrdiff_t(r * own.size()),
                      all.begin() + std::ptrdiff_t((r + 1) * own.size()));
  return each;
}

/// When the operations of the last step ran.
static Timeline by_the_wall(const Communicator& world, const PipelineRun& run,
                            const std::vector<std::vector<Operation>>& stages) {
  std::vector<double> begins, ends;
  for (const MeasuredOperation& one : run.times.back())
    begins.push_back(one.begin), ends.push_back(one.end);
  const Durations begin = values_of_all(world, begins), end = values_of_all(world, ends);
  Timeline timeline(world.size);
  for (std::size_t s = 0; s < world.size; ++s)
    for (std::size_t i = 0; i < stages[s].size(); ++i)
      timeline[s].push_back({stages[s][i], begin[s][i], end[s][i]});
  return timeline;
}

/// The median processor seconds of each own operation.
static std::vector<double> medians(const PipelineRun& run) {
  std::vector<double> seconds;
  for (std::size_t i = 0; i < run.times[0].size(); ++i) {
    std::vector<double> of_steps;
    for (const std::vector<MeasuredOperation>& step : run.times)
      of_steps.push_back(step[i].processor);
    seconds.push_back(quantile(of_steps, 0.5));
  }
  return seconds;
}

static void print_with_idle(const Timeline& timeline) {
  print_timeline(timeline, 66);
  fmt::print("  {}, idle {:.1f} %\n\n", duration_text(length_of(timeline)),
             100 * idle_share(timeline));
}

std::string show_times(const Communicator& world, const PipelineRun& run, std::size_t parts,
                       PipelineSchedule schedule) {
  std::vector<std::vector<Operation>> stages;
  for (std::size_t s = 0; s < world.size; ++s)
    stages.push_back(operations_of(schedule, world.size, s, parts));
  const Timeline wall = by_the_wall(world, run, stages);
  const Timeline clock = played(stages, values_of_all(world, medians(run)));
  if (world.rank != 0) return "";
  print_section(
      fmt::format("A step in time, {}", schedule == PipelineSchedule::gpipe ? "GPipe" : "1F1B"));
  fmt::print("  By the wall's clock, on {} cores\n", std::thread::hardware_concurrency());
  print_with_idle(wall);
  fmt::print("  On {} devices: each operation's processor time, played by a clock\n", world.size);
  print_with_idle(clock);
  print_paragraph(fmt::format(
      "With equal stages and messages that take no time, idle would be {:.1f} %. The median of {} "
      "steps is an operation's time; the first stage has the embedding, and the last one the head.",
      100 * idle_share(world.size, parts), shown_steps));
  return svg_of(clock);
}

}  // namespace t2t
