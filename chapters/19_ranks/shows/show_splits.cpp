#include "19_ranks/shows/show_splits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>

#include "01_embedding/embedding.hpp"
#include "13_training/shows/show_gradients.hpp"
#include "19_ranks/collectives/values.hpp"
#include "19_ranks/sharded/fsdp_trainer.hpp"
#include "19_ranks/sharded/zero1_trainer.hpp"
#include "19_ranks/shows/ranks_text.hpp"
#include "program/print.hpp"

namespace t2t {

static constexpr std::size_t window = 64, shown_steps = 20;  // tokens of a window; of a training
static constexpr std::array<std::string_view, 3> names = {"data", "zero1", "fsdp"};

std::vector<TrainingSplit> splits_named(const std::string& name) {
  if (name == "all") return {TrainingSplit::data, TrainingSplit::zero1, TrainingSplit::fsdp};
  const auto found = std::ranges::find(names, name);
  if (found == names.end())
    throw std::invalid_argument(
        fmt::format("--split: wanted data, zero1, fsdp or all, got {}", name));
  return {TrainingSplit(found - names.begin())};
}

Config training_config() { return small_config(64, 6, window); }

TrainingOptions training_options(std::size_t parts, std::uint64_t seed, std::size_t steps) {
  TrainingOptions options{.B = 2, .T = window, .parts = parts, .clip = 0, .seed = seed};
  options.schedule = {.peak = 6e-3f, .floor = 6e-4f, .warmup = 2, .steps = steps};
  return options;
}

/// What a run on some ranks came to.
struct SplitRun {
  std::vector<double> losses;
  std::vector<float> weights;  // all
  Sent sent;                   // in the last step
  HeldBytes held;
};

std::vector<float> weights_of(const Model& model) {
  std::vector<float> all;
  ModelWeights weights = model.weights();
  for (const ListedTensor& tensor : tensors_of(weights, model.config()))
    all.insert(all.end(), tensor.numbers.begin(), tensor.numbers.end());
  return all;
}
std::vector<float> weights_of(const ShardedModel& model) { return model.all_weights(); }

template <class Trainer>
static SplitRun train(const Communicator& ranks, const std::vector<int>& ids,
                      const TrainingOptions& options, SumOrder order, std::size_t n) {
  Random random(options.seed);
  Trainer trainer(ranks, Model(training_config(), draw_model(training_config(), random)), options,
                  ids, order);
  SplitRun run;
  for (std::size_t i = 0; i < n; ++i) {
    const Sent before = sent();
    run.losses.push_back(trainer.step().loss);
    run.sent = sent() - before;
  }
  run.weights = weights_of(trainer.model());
  run.held = trainer.held_bytes();
  return run;
}

static SplitRun train(TrainingSplit split, const Communicator& ranks, const std::vector<int>& ids,
                      const TrainingOptions& options, SumOrder order, std::size_t n) {
  switch (split) {
    case TrainingSplit::data:
      return train<DataTrainer>(ranks, ids, options, order, n);
    case TrainingSplit::zero1:
      return train<Zero1Trainer>(ranks, ids, options, order, n);
    default:
      return train<FsdpTrainer>(ranks, ids, options, order, n);
  }
}

/// One step of each split on a ring: what rank 0 sends and stores.
static void print_costs(const Communicator& world, const std::vector<int>& ids, std::uint64_t seed,
                        const std::vector<TrainingSplit>& splits) {
  const TrainingOptions options = training_options(world.size, seed, shown_steps);
  Table table({"split", ">sent: formula", ">counted", ">weights", ">gradients", ">optimizer",
               ">rooms", ">all", ">formula"});
  for (const TrainingSplit split : splits) {
    const SplitRun run = train(split, world, ids, options, SumOrder::ring, 1);
    const Sent cost =
        step_cost(split, SumOrder::ring, training_config(), world.size, world.size, world.rank);
    const HeldBytes want =
        stored(split, SumOrder::ring, training_config(), world.size, world.size, world.rank);
    const bool equal = run.sent == cost && run.held == want;
    expect_on_all(world, equal,
                  fmt::format("{}: what was counted or measured is not the formula's",
                              names[std::size_t(split)]));
    table.add({std::string(names[std::size_t(split)]), with_commas(cost.bytes),
               with_commas(run.sent.bytes), with_commas(run.held.weights),
               with_commas(run.held.gradients), with_commas(run.held.optimizer),
               run.held.rooms == 0 ? "" : with_commas(run.held.rooms), with_commas(run.held.all()),
               with_commas(want.all())});
  }
  if (world.rank != 0) return;
  print_section(fmt::format("What rank 0 of {} sends in a step and stores, in bytes", world.size));
  table.print();
}

/// The runs in fixed pairs: one rank's first.
static Tensor<2> print_losses(const std::vector<SplitRun>& runs,
                              const std::vector<TrainingSplit>& splits, std::size_t ranks) {
  std::vector<std::string> header = {">step", ">1 rank"};
  for (const TrainingSplit split : splits)
    header.push_back(fmt::format(">{}, {}", ranks_text(ranks), names[std::size_t(split)]));
  Table table(header);
  Tensor<2> losses = empty(shown_steps, runs.size());
  std::size_t losses_apart = 0;
  for (std::size_t n = 0; n < shown_steps; ++n) {
    std::vector<std::string> cells = {fmt::format("{}", n + 1)};
    for (std::size_t i = 0; i < runs.size(); ++i) {
      losses(n, i) = float(runs[i].losses[n]);
      cells.push_back(fmt::format("{:.4f}", runs[i].losses[n]));
      losses_apart += runs[i].losses[n] != runs[0].losses[n];
    }
    if (n == 0 || (n + 1) % 5 == 0) table.add(cells);
  }
  print_section(fmt::format("{} steps of one training in fixed pairs", shown_steps));
  table.print();
  std::size_t different = 0;
  for (const SplitRun& run : runs)
    for (std::size_t i = 0; i < run.weights.size(); ++i)
      different += run.weights[i] != runs[0].weights[i];
  fmt::print("\n");
  print_paragraph(
      fmt::format("Of {} losses, {} differ in any bit from one rank's; of {} weights "
                  "after {} steps, {}.",
                  shown_steps * (runs.size() - 1), losses_apart,
                  with_commas(runs[0].weights.size()), shown_steps, different));
  return losses;
}

Tensor<2> show_splits(const Communicator& world, const std::string& text, std::uint64_t seed,
                      const std::vector<TrainingSplit>& splits) {
  const std::vector<int> ids = byte_ids(text);
  print_costs(world, ids, seed, splits);
  const TrainingOptions options = training_options(world.size, seed, shown_steps);
  Communicator one = first_ranks(world, 1);
  std::vector<SplitRun> runs(1);
  for (const TrainingSplit split : splits)
    runs.push_back(train(split, world, ids, options, SumOrder::pairs, shown_steps));
  if (world.rank == 0)
    runs[0] = train(TrainingSplit::data, one, ids, options, SumOrder::pairs, shown_steps);
  free_communicator(one);
  return world.rank == 0 ? print_losses(runs, splits, world.size) : empty(0, 1 + splits.size());
}

}  // namespace t2t
