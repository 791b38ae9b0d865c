#include <fmt/format.h>

#include <vector>

#include "01_embedding/embedding.hpp"
#include "19_ranks/counting/counts.hpp"
#include "19_ranks/shows/ranks_text.hpp"
#include "20_split_models/expert_parallel/expert_trainer.hpp"
#include "20_split_models/shows/losses_table.hpp"
#include "20_split_models/shows/show_experts.hpp"
#include "program/print.hpp"

namespace t2t {

static constexpr std::size_t window = 48, windows_of_rank = 2, mixture_steps = 20;

static Config mixture_config() {
  Config config{
      .block = llama_style(64, 4, 4, 88), .L = 2, .V = 256, .T_max = window, .tied = true};
  config.block.experts = shown_experts, config.block.chosen = 2;
  return config;
}

struct MixtureTraining {
  std::vector<double> losses;  // [mixture_steps]
  Sent sent;                   // in the last step
  std::size_t parameters = 0;  // of this rank
};

/// Windows for so many ranks in a step, which may be more than these.
static MixtureTraining train(const Communicator& ranks, const std::vector<int>& ids,
                             std::size_t all_ranks, std::uint64_t seed) {
  const Config config = mixture_config();
  Random random(seed);
  TrainingOptions options{.B = windows_of_rank * all_ranks / ranks.size,
                          .T = window,
                          .parts = ranks.size,
                          .seed = seed};
  options.schedule = {.peak = 6e-3f, .floor = 6e-4f, .warmup = 2, .steps = mixture_steps};
  ExpertTrainer trainer(ranks, config, draw_model(config, random), options, ids);
  MixtureTraining run;
  for (const ListedTensor& tensor : trainer.gradients()) run.parameters += tensor.numbers.size();
  for (std::size_t n = 0; n < mixture_steps; ++n) {
    const Sent before = sent();
    run.losses.push_back(trainer.step().loss);
    run.sent = sent() - before;
  }
  return run;
}

Tensor<2> show_expert_training(const Communicator& world, const std::string& text,
                               std::uint64_t seed) {
  const std::vector<int> ids = byte_ids(text);
  const MixtureTraining divided = train(world, ids, world.size, seed);
  Communicator one = first_ranks(world, 1);
  if (world.rank != 0) return empty(0, 2);
  const MixtureTraining alone = train(one, ids, world.size, seed);
  free_communicator(one);
  print_section(fmt::format("{} steps of a mixture, on 1 rank and on {}", mixture_steps,
                            ranks_text(world.size)));
  const Tensor<2> losses = print_losses(world.size, alone.losses, divided.losses);
  fmt::print("\n");
  print_paragraph(fmt::format(
      "Rank 0 stores {} of {} parameters. In the last step, of {} tokens, it sent {} bytes.",
      with_commas(divided.parameters), with_commas(alone.parameters),
      world.size * windows_of_rank * window, with_commas(divided.sent.bytes)));
  return losses;
}

}  // namespace t2t
