#include "20_split_models/shows/show_training.hpp"

#include <fmt/format.h>

#include <vector>

#include "01_embedding/embedding.hpp"
#include "19_ranks/counting/costs.hpp"
#include "19_ranks/shows/ranks_text.hpp"
#include "20_split_models/shows/losses_table.hpp"
#include "20_split_models/tensor_parallel/split_trainer.hpp"
#include "program/print.hpp"

namespace t2t {

static constexpr std::size_t T = 48, B = 2, steps = 20;

static Config training_config() {
  return {.block = llama_style(72, 12, most_training_ranks, 192),
          .L = 2,
          .V = 256,
          .T_max = T,
          .tied = true};
}

struct ShownTraining {
  std::vector<double> losses;  // [steps]
  Sent sent;                   // in the last step
  std::size_t parameters;      // of this rank
};

static ShownTraining train(const Communicator& ranks, const std::vector<int>& ids,
                           std::uint64_t seed) {
  const Config whole = training_config();
  Random random(seed);
  TrainingOptions options{.B = B, .T = T, .seed = seed};
  options.schedule = {.peak = 6e-3f, .floor = 6e-4f, .warmup = 2, .steps = steps};
  SplitTrainer trainer(ranks, whole, draw_model(whole, random), options, ids);
  ShownTraining shown = {{}, {}, parameter_count(trainer.model().weights())};
  for (std::size_t n = 0; n < steps; ++n) {
    const Sent before = sent();
    shown.losses.push_back(trainer.step().loss);
    shown.sent = sent() - before;
  }
  return shown;
}

Tensor<2> show_training(const Communicator& world, const std::string& text, std::uint64_t seed) {
  const std::vector<int> ids = byte_ids(text);
  const ShownTraining divided = train(world, ids, seed);
  Communicator one = first_ranks(world, 1);
  if (world.rank != 0) return empty(0, 2);
  const ShownTraining alone = train(one, ids, seed);
  free_communicator(one);
  print_section(
      fmt::format("{} steps of one training, on 1 rank and on {}", steps, ranks_text(world.size)));
  const Tensor<2> losses = print_losses(world.size, alone.losses, divided.losses);
  // The norm of the gradient is a value of two floats.
  const Sent formula = split_gradients_cost(training_config(), B * T, world.size, 0) +
                       tree_all_reduce_cost(2, world.size, 0);
  fmt::print("\n");
  print_paragraph(
      fmt::format("Rank 0 stores {} of {} parameters, and as many gradients and means of AdamW. In "
                  "a step of {} "
                  "tokens it sends {} bytes in {} messages; the formula says {} in {}.",
                  with_commas(divided.parameters), with_commas(alone.parameters), B * T,
                  with_commas(divided.sent.bytes), divided.sent.messages,
                  with_commas(formula.bytes), formula.messages));
  return losses;
}

}  // namespace t2t
