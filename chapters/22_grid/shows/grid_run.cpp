#include "22_grid/shows/grid_run.hpp"

#include <algorithm>

#include "19_ranks/link/system_clock.hpp"
#include "random.hpp"

namespace t2t {

Config grid_config(std::size_t C) {
  const BlockSettings block = llama_style(C, 8, 8, 11 * C / 4);
  return {.block = block, .L = 4, .V = 256, .T_max = shown_T, .tied = true};
}

Config grid_mixture_config() {
  Config config = grid_config();
  config.block.F /= 2;
  config.block.experts = 8, config.block.chosen = 2;
  return config;
}

TrainingOptions grid_options(std::uint64_t seed, std::size_t parts) {
  TrainingOptions options{.B = shown_B, .T = shown_T, .parts = parts, .seed = seed};
  options.schedule = {.peak = 6e-3f, .floor = 6e-4f, .warmup = 2, .steps = shown_steps};
  return options;
}

GridRun run_grid(const Communicator& world, const GridShape& shape, const GridTask& task,
                 const std::vector<int>& ids) {
  const RankGrid grid(world, shape);
  Random random(task.options.seed);
  GridTrainer trainer(grid, task.config, draw_model(task.config, random), task.options, ids,
                      task.shards, task.balance);
  GridRun run;
  std::vector<double> seconds;
  for (std::size_t n = 0; n < shown_steps; ++n) {
    const double start = seconds_on(CLOCK_PROCESS_CPUTIME_ID);
    const StepReport report = trainer.step();
    seconds.push_back(seconds_on(CLOCK_PROCESS_CPUTIME_ID) - start);
    run.losses.push_back(report.loss), run.norms.push_back(report.gradient_norm);
  }
  run.sent = trainer.sent_in_step();
  run.rows = trainer.rows_exchanged();
  run.memory = {trainer.held_bytes(), trainer.kept_bytes()};
  run.processor = std::ranges::min(seconds);
  return run;
}

}  // namespace t2t
