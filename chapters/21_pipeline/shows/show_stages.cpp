#include "21_pipeline/shows/show_stages.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "19_ranks/collectives/values.hpp"
#include "19_ranks/shows/ranks_text.hpp"
#include "21_pipeline/stages/pipeline_costs.hpp"
#include "program/print.hpp"

namespace t2t {

/// The formulas' bytes saved by a stage under a schedule.
static std::size_t saved(PipelineSchedule schedule, StagePlace place, std::size_t parts) {
  return kept_cost(pipeline_config(), place, shown_B * shown_T,
                   most_in_flight(schedule, place.stages, place.stage, parts));
}

/// Throws on all ranks unless every rank's counts are the formulas'.
static void expect_formulas(const Communicator& world, std::size_t parts, const PipelineRun& gpipe,
                            const PipelineRun& alternating) {
  const StagePlace own = {world.rank, world.size};
  const Sent sent = pipeline_step_cost(pipeline_config(), own, shown_B * shown_T, parts);
  const bool equal = gpipe.sent == sent && alternating.sent == sent &&
                     gpipe.kept_bytes == saved(PipelineSchedule::gpipe, own, parts) &&
                     alternating.kept_bytes == saved(PipelineSchedule::one_f_one_b, own, parts);
  expect_on_all(world, equal, "what was counted or measured is not the formula's");
}

void show_costs(const Communicator& world, std::size_t parts, const PipelineRun& gpipe,
                const PipelineRun& alternating) {
  expect_formulas(world, parts, gpipe, alternating);
  if (world.rank != 0) return;
  print_section(fmt::format("What a stage of {} stores, sends and saves in a step", world.size));
  Table table({">stage", "blocks", ">parameters", ">to neighbours", ">all sent", ">saved, GPipe",
               ">saved, 1F1B"});
  Random random(1);
  const Config config = pipeline_config();
  const ModelWeights weights = draw_model(config, random);
  for (std::size_t s = 0; s < world.size; ++s) {
    const StagePlace place = {s, world.size};
    const Range blocks = blocks_of(config, place);
    ModelWeights own = stage_weights(weights, config, place);
    std::size_t parameters = 0;
    for (const ListedTensor& tensor : stage_tensors(own, config, place))
      parameters += tensor.numbers.size();
    const std::size_t tokens = shown_B * shown_T;
    table.add({fmt::format("{}", s), fmt::format("{} to {}", blocks.begin, blocks.end - 1),
               with_commas(parameters),
               with_commas(neighbours_cost(config, place, tokens, parts).bytes),
               with_commas(pipeline_step_cost(config, place, tokens, parts).bytes),
               with_commas(saved(PipelineSchedule::gpipe, place, parts)),
               with_commas(saved(PipelineSchedule::one_f_one_b, place, parts))});
  }
  table.print();
  fmt::print("\n");
  print_paragraph(
      "Bytes, by formula; on every rank and under both schedules the program has counted as many.");
}

/// How many of the own weights differ from the same model's on one stage.
static std::size_t different_weights(const PipelineRun& alone, const PipelineRun& run) {
  std::size_t different = 0;
  for (const auto& [info, numbers] : run.weights) {
    const auto same = std::ranges::find(alone.weights, full_name(info),
                                        [](const ListedTensor& t) { return full_name(t.info); });
    for (std::size_t i = 0; i < numbers.size(); ++i) different += !(numbers[i] == same->numbers[i]);
  }
  return different;
}

Tensor<2> show_losses(const Communicator& world, const PipelineRun& alone, const PipelineRun& run) {
  const double different = sum_of_values(world, {double(different_weights(alone, run))})[0];
  Tensor<2> losses = empty(shown_steps, 2);
  for (std::size_t n = 0; n < shown_steps; ++n)
    losses(n, 0) = float(alone.losses[n]), losses(n, 1) = float(run.losses[n]);
  if (world.rank != 0) return losses;
  print_section(
      fmt::format("{} steps of one training, on 1 stage and on {}", shown_steps, world.size));
  Table table({">step", ">1 stage", fmt::format(">{}", ranks_text(world.size))});
  for (std::size_t n = 0; n < shown_steps; ++n)
    if (n == 0 || (n + 1) % 4 == 0)
      table.add({fmt::format("{}", n + 1), fmt::format("{:.4f}", alone.losses[n]),
                 fmt::format("{:.4f}", run.losses[n])});
  table.print();
  std::size_t other_losses = 0;
  for (std::size_t n = 0; n < shown_steps; ++n) other_losses += alone.losses[n] != run.losses[n];
  fmt::print("\n");
  print_paragraph(fmt::format(
      "{} of {} losses differ from those of one stage, and {:.0f} of all weights after the last "
      "step.",
      other_losses, shown_steps, different));
  return losses;
}

}  // namespace t2t
