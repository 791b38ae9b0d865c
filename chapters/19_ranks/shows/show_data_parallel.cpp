#include "19_ranks/shows/show_data_parallel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "01_embedding/embedding.hpp"
#include "13_training/shows/show_gradients.hpp"
#include "19_ranks/counting/costs.hpp"
#include "19_ranks/data_parallel/data_trainer.hpp"
#include "19_ranks/shows/ranks_text.hpp"
#include "program/print.hpp"

namespace t2t {

static constexpr std::size_t T = 64, steps = 20;

/// What a run on some ranks came to.
struct ShownRun {
  std::vector<double> losses;  // [steps]
  std::vector<float> weights;
  Sent sent;  // in the last step
};

static ShownRun train(const Communicator& ranks, const std::vector<int>& ids, std::uint64_t seed,
                      SumOrder order) {
  const Config config = small_config(64, 2, T);
  Random random(seed);
  TrainingOptions options{.B = 2, .T = T, .parts = shown_parts, .seed = seed};
  options.schedule = {.peak = 6e-3f, .floor = 6e-4f, .warmup = 2, .steps = steps};
  DataTrainer trainer(ranks, Model(config, draw_model(config, random)), options, ids, order);
  ShownRun run;
  for (std::size_t n = 0; n < steps; ++n) {
    const Sent before = sent();
    run.losses.push_back(trainer.step().loss);
    run.sent = sent() - before;
  }
  ModelWeights weights = trainer.model().weights();
  for (const ListedTensor& tensor : tensors_of(weights, config))
    run.weights.insert(run.weights.end(), tensor.numbers.begin(), tensor.numbers.end());
  return run;
}

/// The largest difference of a weight.
static float apart(const ShownRun& a, const ShownRun& b) {
  float most = 0;
  for (std::size_t i = 0; i < a.weights.size(); ++i)
    most = std::max(most, std::abs(a.weights[i] - b.weights[i]));
  return most;
}

static Tensor<2> print_losses(const Communicator& world, const ShownRun& alone,
                              const ShownRun& ring, const ShownRun& pairs) {
  Table table({">step", ">1 rank", fmt::format(">{}, ring", ranks_text(world.size)),
               fmt::format(">{}, pairs", ranks_text(world.size))});
  Tensor<2> losses = empty(steps, 3);
  for (std::size_t n = 0; n < steps; ++n) {
    losses(n, 0) = float(alone.losses[n]);
    losses(n, 1) = float(ring.losses[n]), losses(n, 2) = float(pairs.losses[n]);
    if (n == 0 || (n + 1) % 5 == 0)
      table.add({fmt::format("{}", n + 1), fmt::format("{:.9f}", alone.losses[n]),
                 fmt::format("{:.9f}", ring.losses[n]), fmt::format("{:.9f}", pairs.losses[n])});
  }
  table.print();
  return losses;
}

Tensor<2> show_data_parallel(const Communicator& world, const std::string& text,
                             std::uint64_t seed) {
  const std::vector<int> ids = byte_ids(text);
  Communicator one = first_ranks(world, 1);
  const ShownRun ring = train(world, ids, seed, SumOrder::ring);
  const ShownRun pairs = train(world, ids, seed, SumOrder::pairs);
  if (world.rank != 0) return empty(0, 3);
  const ShownRun alone = train(one, ids, seed, SumOrder::pairs);
  free_communicator(one);
  print_section(
      fmt::format("{} steps of one training, on 1 rank and on {}", steps, ranks_text(world.size)));
  const Tensor<2> losses = print_losses(world, alone, ring, pairs);
  fmt::print("\n");
  print_paragraph(fmt::format(
      "The largest difference of a weight from one rank's: {:.2g} with sums on a ring, {:.2g} in "
      "fixed pairs of the {} parts of a batch.",
      apart(ring, alone), apart(pairs, alone), shown_parts));
  const Sent formula = ring_all_reduce_cost(ring.weights.size(), world.size, 0) +
                       tree_all_reduce_cost(2 * shown_parts, world.size, 0);
  fmt::print("\n");
  print_paragraph(fmt::format(
      "On the ring, rank 0 sends {} bytes in {} messages in each step, and the formula for {} "
      "parameters and {} parts' losses says {} bytes in {}.",
      with_commas(ring.sent.bytes), ring.sent.messages, with_commas(ring.weights.size()),
      shown_parts, with_commas(formula.bytes), formula.messages));
  return losses;
}

}  // namespace t2t
