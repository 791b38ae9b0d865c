#include "22_grid/shows/show_threads.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>

#include "09_language_model/fast/forward.hpp"
#include "19_ranks/collectives/values.hpp"
#include "19_ranks/counting/costs.hpp"
#include "19_ranks/link/system_clock.hpp"
#include "20_split_models/tensor_parallel/parallel_state.hpp"
#include "20_split_models/tensor_parallel/shard_weights.hpp"
#include "20_split_models/tensor_parallel/shards.hpp"
#include "22_grid/training/grid_trainer.hpp"
#include "linalg.hpp"
#include "program/print.hpp"
#include "random.hpp"
#include "shapes.hpp"

namespace t2t {

static constexpr std::size_t turns = 5, most_tokens = 320;

/// Some work on one rank with two threads, and the same on two ranks.
struct Compared {
  std::string what, split;
  std::function<void()> alone, divided;  // `alone` is called on rank 0 only
};

struct Times {
  double alone, divided;  // seconds, medians
  Sent sent;              // by rank 0 in one call
};

static double median(std::vector<double> x) {
  std::ranges::sort(x);
  return x[x.size() / 2];
}

static double seconds_of(const std::function<void()>& work) {
  const double start = seconds_on(CLOCK_MONOTONIC);
  work();
  return seconds_on(CLOCK_MONOTONIC) - start;
}

/// In turns, so that what else the machine does meets both.
static Times time_both(const Communicator& world, const Compared& work) {
  std::vector<double> alone, divided;
  Sent sent_once;
  for (std::size_t turn = 0; turn <= turns; ++turn) {
    set_threads(2);
    const double one = world.rank == 0 ? seconds_of(work.alone) : 0;
    set_threads(1);
    wait_for_all(world);
    const Sent before = sent();
    const double two = seconds_of(work.divided);
    sent_once = sent() - before;
    wait_for_all(world);
    if (turn > 0) alone.push_back(one), divided.push_back(two);  // the first one warms up
  }
  return {median(alone), median(divided), sent_once};
}

/// What so many messages take, each of the mean length, if nothing else happens meanwhile.
static double seconds_of_messages(const Communicator& world, const Sent& of_rank_0) {
  const std::vector<double> sent = sum_of_values(
      world, world.rank == 0 ? std::vector{double(of_rank_0.messages), double(of_rank_0.bytes)}
                             : std::vector{0.0, 0.0});
  if (sent[0] == 0) return 0;
  const std::size_t floats =
      std::max<std::size_t>(std::size_t(sent[1] / sent[0] / sizeof(float)), 1);
  return sent[0] * message_seconds(world, floats, Ways::at_once, 21);
}

/// A model of 17 million parameters whose heads two ranks divide evenly.
static Config text_config() {
  return {
      .block = llama_style(512, 8, 8, 1408), .L = 4, .V = 8192, .T_max = most_tokens, .tied = true};
}

/// One model, whole and as this rank's shard, with a state for each.
struct TextModels {
  Model whole, own;
  ModelState whole_state, own_state;
  Tensor<1> logits = empty(text_config().V);

  TextModels(const Communicator& world, const ModelWeights& weights)
      : whole(text_config(), weights),
        own(config_of(text_config(), {world.rank, world.size}),
            shard_of(weights, text_config(), {world.rank, world.size})),
        whole_state(text_config(), most_tokens, {}),
        own_state(own.config(), most_tokens, parallel_options(ShardGroup(world))) {}
};

/// Prefill of a prompt, and then tokens one by one.
static std::vector<Compared> texts(const std::shared_ptr<TextModels>& models) {
  constexpr std::size_t prompt = 128, new_tokens = 8;
  std::vector<int> ids;
  for (std::size_t n = 0; n < prompt; ++n) ids.push_back(int(37 * n % 8192));
  const auto prefill = [models, ids](const Model& model, ModelState& state) {
    reset(state);
    forward(model, state, ids, row(models->logits));
  };
  const auto decode = [models, ids](const Model& model, ModelState& state) {
    truncate(state, ids.size());
    for (std::size_t n = 0; n < new_tokens; ++n)
      forward(model, state, std::span(ids).subspan(n, 1), row(models->logits));
  };
  return {{fmt::format("prefill of {} tokens", prompt), "tensor",
           [=] { prefill(models->whole, models->whole_state); },
           [=] { prefill(models->own, models->own_state); }},
          {fmt::format("decode of {} tokens", new_tokens), "tensor",
           [=] { decode(models->whole, models->whole_state); },
           [=] { decode(models->own, models->own_state); }}};
}

/// A training step of 4 micro-batches with 128 tokens each, divided in one direction.
static Compared step(const Communicator& world, const std::vector<int>& ids, std::uint64_t seed,
                     const std::string& split, const GridShape& shape) {
  struct Trainers {
    RankGrid self, both;
    std::unique_ptr<GridTrainer> alone, divided;
    Trainers(const Communicator& all, const GridShape& divided_in)
        : self(single_rank(), {}), both(all, divided_in) {}
  };
  Config config{.block = llama_style(256, 8, 8, 704), .L = 2, .V = 256, .T_max = 128, .tied = true};
  if (shape.experts > 1) {
    config.block.F = 352;
    config.block.experts = 8, config.block.chosen = 2;
  }
  TrainingOptions options{.B = 1, .T = 128, .parts = 4, .seed = seed};
  options.schedule = {.peak = 1e-3f, .floor = 1e-4f, .warmup = 2, .steps = 100};
  Random random(seed);
  const ModelWeights weights = draw_model(config, random);
  const auto trainers = std::make_shared<Trainers>(world, shape);
  trainers->alone = std::make_unique<GridTrainer>(trainers->self, config, weights, options, ids);
  trainers->divided = std::make_unique<GridTrainer>(trainers->both, config, weights, options, ids);
  return {shape.experts > 1 ? "training step of a mixture" : "training step", split,
          [trainers] { trainers->alone->step(); }, [trainers] { trainers->divided->step(); }};
}

void show_threads(const Communicator& world, const std::vector<int>& ids, std::uint64_t seed) {
  expect(world.size == 2, "ranks beside threads", "2", world.size);
  set_threads(2);  // what works on two threads must be made for them
  Random random(seed);
  const auto models = std::make_shared<TextModels>(world, draw_model(text_config(), random));
  std::vector<Compared> all = texts(models);
  all.push_back(step(world, ids, seed, "data", {.data = 2}));
  all.push_back(step(world, ids, seed, "stages", {.stages = 2}));
  all.push_back(step(world, ids, seed, "tensor", {.tensor = 2}));
  all.push_back(step(world, ids, seed, "experts", {.experts = 2}));
  Table table({"work", "split", ">1 rank, 2 threads", ">2 ranks, 1 thread", ">ratio", ">messages",
               ">their share"});
  for (const Compared& work : all) {
    const Times times = time_both(world, work);
    const double messages = seconds_of_messages(world, times.sent);
    table.add({work.what, work.split, duration_text(times.alone), duration_text(times.divided),
               fmt::format("{:.2f}", times.alone / times.divided), with_commas(times.sent.messages),
               fmt::format("{:.0f} %", 100 * messages / times.divided)});
  }
  if (world.rank != 0) return;
  print_section("Two ranks with one thread each, and one rank with two threads");
  table.print();
  fmt::print("\n");
  print_paragraph(
      fmt::format("Medians of {} calls, in turns. A ratio above 1 means that two ranks are faster. "
                  "The share is "
                  "that of as many messages of the mean length, of the time on two ranks.",
                  turns));
}

}  // namespace t2t
