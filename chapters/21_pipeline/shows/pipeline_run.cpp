#include "21_pipeline/shows/pipeline_run.hpp"

#include "13_training/shows/show_gradients.hpp"
#include "random.hpp"

namespace t2t {

Config pipeline_config() { return small_config(64, 8, shown_T); }

PipelineRun run_pipeline(const Communicator& ranks, const std::vector<int>& ids, std::uint64_t seed,
                         std::size_t parts, PipelineSchedule schedule) {
  const Config config = pipeline_config();
  Random random(seed);
  TrainingOptions options{.B = shown_B, .T = shown_T, .parts = parts, .seed = seed};
  options.schedule = {.peak = 6e-3f, .floor = 6e-4f, .warmup = 2, .steps = shown_steps};
  PipelineTrainer trainer(ranks, config, draw_model(config, random), options, ids, schedule);
  PipelineRun run;
  for (std::size_t n = 0; n < shown_steps; ++n) {
    const Sent before = sent();
    run.losses.push_back(trainer.step().loss);
    run.sent = sent() - before;
    run.times.push_back(trainer.stage().times());
  }
  run.kept_bytes = trainer.stage().kept_bytes();
  run.elements.reserve(trainer.weights().size());  // so that none of them moves
  for (const auto& [info, numbers] : trainer.weights()) {
    Tensor<1>& copy = run.elements.emplace_back(empty(numbers.size()));
    std::copy(numbers.begin(), numbers.end(), copy.begin());
    run.weights.push_back({info, row(copy)});
  }
  return run;
}

}  // namespace t2t
