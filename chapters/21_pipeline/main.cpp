// Pipeline: a model as stages, each of which computes some of its blocks for one micro-batch after
// the other.
#include <fmt/format.h>

#include <functional>
#include <stdexcept>
#include <string>

#include "01_embedding/embedding.hpp"
#include "19_ranks/shows/measured_text.hpp"
#include "19_ranks/start/start_ranks.hpp"
#include "21_pipeline/shows/show_plan.hpp"
#include "21_pipeline/shows/show_stages.hpp"
#include "21_pipeline/shows/show_times.hpp"
#include "files/files.hpp"
#include "program/program.hpp"
#include "program/solutions.hpp"

using namespace t2t;

/// What the flags choose.
struct PipelineFlags {
  std::size_t ranks = 4, parts = 8;
  std::string schedule = "1f1b", svg;
};

/// The same on each rank.
static int tour(const Program& program, const Communicator& world, const PipelineFlags& flags) {
  silence_others(world);
  Tensor<2> shares = empty(1, 3);
  if (world.rank == 0) shares = show_plan(world.size, flags.parts);
  const std::vector<int> ids = byte_ids(measured_text());
  const auto run_as = [&](PipelineSchedule schedule) {
    return run_pipeline(world, ids, program.seed(), flags.parts, schedule);
  };
  const PipelineSchedule schedule = schedule_named(flags.schedule);
  const PipelineRun gpipe = run_as(PipelineSchedule::gpipe),
                    alternating = run_as(PipelineSchedule::one_f_one_b);
  const Communicator self = single_rank();
  const PipelineRun alone = run_pipeline(self, ids, program.seed(), flags.parts, schedule);
  const PipelineRun& chosen = schedule == PipelineSchedule::gpipe ? gpipe : alternating;
  show_costs(world, flags.parts, gpipe, alternating);
  const Tensor<2> losses = show_losses(world, alone, chosen);
  const std::string svg = show_times(world, chosen, flags.parts, schedule);
  if (world.rank != 0) return 0;
  program.save("shares", shares), program.save("losses", losses);
  if (!flags.svg.empty()) write_file(flags.svg, svg);
  return 0;
}

int main(int argc, char** argv) {
  PipelineFlags flags;
  Program program("21_pipeline",
                  "One model as a pipeline of stages, each on a process of its own. Shows the "
                  "schedules, what a stage sends and saves, a training on one stage and on many, "
                  "and a step in time.");
  program.size("ranks", flags.ranks, "how many processes to start, a stage each");
  program.size("parts", flags.parts, "micro-batches of a step");
  program.word("schedule", flags.schedule,
               "which schedule is trained and drawn: all forward and then all backward (gpipe), or "
               "in turn (1f1b)");
  program.output("svg", flags.svg, "write the step in time to this file as a picture");
  program.has_solutions(solutions);
  const auto check = [&] {
    constexpr std::size_t most_parts = 64;
    if (flags.parts > most_parts)
      throw std::invalid_argument(
          fmt::format("--parts: wanted at most {}, got {}", most_parts, flags.parts));
    schedule_named(flags.schedule);
    blocks_of(pipeline_config(), {0, flags.ranks});  // which refuses more stages than blocks
    if (!flags.svg.empty()) expect_writable(flags.svg);
  };
  const auto show = [&] {
    if (!is_rank()) start_ranks(flags.ranks, {argv, argv + argc});
    return run_on_ranks("21_pipeline",
                        [&](const Communicator& world) { return tour(program, world, flags); });
  };
  return program.run_tasks(
      argc, argv, {{{"", {"ranks", "parts", "schedule", "svg", "seed", "save"}, show}}, {}, check});
}
