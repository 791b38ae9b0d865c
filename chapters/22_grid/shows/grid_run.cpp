#include "22_grid/shows/grid_run.hpp"

#include <algorithm>

#include "19_ranks/link/system_clock.hpp"
#include "random.hpp"

namespace t2t {

Config grid_config(std::size_t C) {
  const BlockSettings block = llama_style(C, 8, 8, 11 * C / 4);
  return {.block = block, .L = 4, .V = 256, .T_max = shown_T, .tied = true};
}

TrainingOptions grid_options(std::uint64_t seed, std::size_t parts) {
  TrainingOptions options{.B = shown_B, .T = shown_T, .parts = parts, .seed = seed};
  options.schedule = {.peak = 6e-3f, .floor = 6e-4f, .warmup = 2, .steps = shown_steps};
  return options;
}

GridRun run_grid(const Communicator& world, const GridShape& shape, const Config& config,
                 const TrainingOptions& options, const std::vector<int>& ids, std::size_t shards) {
  const RankGrid grid(world, shape);
  Random random(options.seed);
  GridTrainer trainer(grid, config, draw_model(config, random), options, ids, shards);
  GridRun run;
  std::vector<double> seconds;
  for (std::size_t n = 0; n < shown_steps; ++n) {
    const double start = seconds_on(CLOCK_PROCESS_CPUTIME_ID);
    const StepReport report = trainer.step();
    seconds.push_back(seconds_on(CLOCK_PROCESS_CPUTIME_ID) - start);
    run.losses.push_back(report.loss), run.norms.push_back(report.gradient_norm);
  }
  run.sent = trainer.sent_in_step();
  run.memory = {trainer.held_bytes(), trainer.kept_bytes()};
  run.processor = std::ranges::min(seconds);
  return run;
}

}  // namespace t2t
