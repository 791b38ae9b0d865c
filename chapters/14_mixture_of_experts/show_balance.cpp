#include "14_mixture_of_experts/show_balance.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <vector>

#include "01_embedding/embedding.hpp"
#include "09_language_model/accounts.hpp"
#include "13_training/trainer/trainer.hpp"
#include "14_mixture_of_experts/mixture_counts.hpp"
#include "14_mixture_of_experts/mixture_network.hpp"
#include "program/print.hpp"
#include "program/progress.hpp"
#include "timing/measure.hpp"

namespace t2t {

static constexpr std::size_t B = 16, T = 64, E = 8, F_of_expert = 88;

/// One side of the comparison.
struct MixtureSide {
  std::string name;
  Balance balance = {};
  std::size_t k = 2;
  std::size_t dense_F = 0;  // above 0: a dense model of this F
  Scoring scoring = Scoring::softmax;
  bool normalised = true;
  double more_steps = 1;  // times those of the others
};
struct MixtureRun {
  double held_out, seconds_a_step, dropped;
  Tensor<2> loads;     // [L, E], means over the last 50 steps
  Tensor<2> of_kinds;  // [E, kinds of bytes]: the share of each kind's choices, in the last layer
};

constexpr std::array kinds = {"a to z", "A to Z", "0 to 9", "space", "others"};
static std::size_t kind_of(int byte) {
  if (byte >= 'a' && byte <= 'z') return 0;
  if (byte >= 'A' && byte <= 'Z') return 1;
  if (byte >= '0' && byte <= '9') return 2;
  return byte == ' ' || byte == '\n' ? 3 : 4;
}

/// Which experts each kind of byte of a text takes in the last layer.
static Tensor<2> kinds_of(const Model& model, TrainedExperts& experts, std::span<const int> ids) {
  const std::size_t L = model.config().L, k = model.config().block.chosen;
  TrainingSlots slots;
  slots.network = experts.network();
  Gradients passes(model.config(), B, T, slots);
  Batch batch = make_batch(B, T);
  Tensor<2> counts = xt::zeros<float>({E, kinds.size()});
  for (std::size_t first = 0; fill_in_order(batch, ids, first); first += B * T) {
    passes.loss(model, batch);
    for (std::size_t choice = 0; choice < B * T * k; ++choice)
      if (batch.targets[choice / k] != not_learned)
        counts(experts.routed(L - 1).experts[choice], kind_of(batch.ids[choice / k])) += 1;
  }
  const Tensor<1> of_kind = xt::sum(counts, {0});
  return counts / xt::maximum(of_kind, 1.0f);
}

static Config config_of(const MixtureSide& side, std::size_t L) {
  Config config{.block = llama_style(64, 4, 4, side.dense_F > 0 ? side.dense_F : F_of_expert),
                .L = L,
                .V = 256,
                .T_max = T,
                .tied = true};
  if (side.dense_F == 0) config.block.experts = E, config.block.chosen = side.k;
  return config;
}

static MixtureRun train(const MixtureSide& side, const SplitText& text, std::size_t L,
                        std::size_t steps, std::uint64_t seed) {
  steps = std::size_t(double(steps) * side.more_steps);
  const std::vector<int> train_ids = byte_ids(text.train), held_out = byte_ids(text.held_out);
  const Config config = config_of(side, L);
  Random random(seed);
  TrainedExperts experts(L, E, side.scoring, side.normalised, side.balance);
  TrainingOptions options{.B = B, .T = T, .seed = seed};
  options.schedule = {8e-3f, 8e-4f, steps / 10, steps};
  TrainingHooks hooks;
  if (side.dense_F == 0) hooks.slots.network = experts.network();
  Trainer trainer(Model(config, draw_model(config, random)), options, train_ids, hooks);

  MixtureRun run{0, 0, 0, xt::zeros<float>({L, E}), {}};
  const std::size_t last = std::min<std::size_t>(steps, 50);
  const auto began = std::chrono::steady_clock::now();
  for (std::size_t n = 0; n < steps; ++n) {
    const StepReport step = trainer.step();
    if (side.dense_F == 0) experts.after_step();
    if (n + last >= steps) {
      run.loads += experts.loads() / float(last);
      run.dropped += experts.dropped() / double(last);
    }
    if (n % 10 == 0)
      show_progress(fmt::format("  {}, seed {}, {}  loss {:.3f} ", side.name, seed,
                                steps_done(n, steps), step.loss));
  }
  run.seconds_a_step = seconds_since(began) / double(steps);
  experts.without_capacity();
  run.held_out = trainer.loss_of(held_out);
  if (side.dense_F == 0) run.of_kinds = kinds_of(trainer.model(), experts, held_out);
  show_progress("");
  return run;
}

static void show_loads(const std::vector<MixtureSide>& sides, const std::vector<MixtureRun>& runs) {
  for (std::size_t l = 0; l < runs[0].loads.shape(0); ++l) {
    print_section(fmt::format("Load of each expert, layer {}", l));
    for (std::size_t i = 0; i < runs.size(); ++i) {
      fmt::print("  {}\n", sides[i].name);
      for (std::size_t e = 0; e < E; ++e) {
        const double share = double(runs[i].loads(l, e));
        fmt::print("    {}  {} {:4.1f} %\n", e, bar(std::min(1.0, share), 50), 100 * share);
      }
    }
  }
}

static void show_kinds(const MixtureRun& run) {
  print_section("Which expert takes which bytes, layer 1, with Switch's loss");
  std::vector<std::string> header = {">expert"};
  for (const char* kind : kinds) header.push_back(std::string(">") + kind);
  Table table(header);
  for (std::size_t e = 0; e < E; ++e) {
    std::vector<std::string> cells = {std::to_string(e)};
    for (std::size_t i = 0; i < kinds.size(); ++i)
      cells.push_back(fmt::format("{:.0f} %", 100 * double(run.of_kinds(e, i))));
    table.add(cells);
  }
  table.print();
  fmt::print("\n");
  print_paragraph(
      "Of the choices of each kind of byte in held-out text, the share that goes to each expert. "
      "Each column adds up to 100 %.");
}

void show_balance(const std::string& text, std::size_t steps, std::size_t seed) {
  const std::vector<MixtureSide> sides = {{"no balance"},
                                          {"Switch's loss, factor 0.01", {.switch_loss = 0.01f}},
                                          {"a bias, step 0.001", {.bias_rate = 0.001f}}};
  const SplitText split = split_by_passage(text);
  std::vector<MixtureRun> runs;
  Table table({"balanced by", ">held-out loss", ">largest load", ">smallest load", ">ms a step"});
  for (const MixtureSide& side : sides) {
    runs.push_back(train(side, split, 2, steps, seed));
    const MixtureRun& run = runs.back();
    table.add({side.name, fmt::format("{:.3f}", run.held_out),
               fmt::format("{:.1f} %", 100 * double(xt::amax(run.loads)())),
               fmt::format("{:.1f} %", 100 * double(xt::amin(run.loads)())),
               fmt::format("{:.1f}", 1e3 * run.seconds_a_step)});
  }
  print_section("A mixture learns the book, with and without balance");
  print_paragraph(
      fmt::format("2 layers of 8 experts, of which a token takes 2: {} steps of {} windows of {} "
                  "bytes. With an "
                  "even load, each expert gets 12.5 %.",
                  steps, B, T));
  fmt::print("\n");
  table.print();
  show_loads(sides, runs);
  show_kinds(runs[1]);
}

int show_comparison(const std::string& text, std::size_t steps, std::size_t seeds) {
  const std::size_t L = 4;
  const std::vector<MixtureSide> sides = {
      {.name = "dense, as many active", .dense_F = 2 * F_of_expert},
      {.name = "dense, as many active, 4/3 of the steps",
       .dense_F = 2 * F_of_expert,
       .more_steps = 4.0 / 3},
      {.name = "dense, as many in all", .dense_F = E * F_of_expert},
      {.name = "mixture, no balance"},
      {.name = "mixture, Switch's loss 0.01", .balance = {.switch_loss = 0.01f}},
      {.name = "mixture, Switch's loss 0.1", .balance = {.switch_loss = 0.1f}},
      {.name = "mixture, a bias", .balance = {.bias_rate = 0.001f}},
      {.name = "mixture, capacity 1.25, Switch's loss 0.01",
       .balance = {.switch_loss = 0.01f, .slack = 1.25}},
      {.name = "k = 1, p as weight, Switch's loss 0.01",
       .balance = {.switch_loss = 0.01f},
       .k = 1,
       .normalised = false},
      {.name = "k = 1, weight normalised to 1", .balance = {.switch_loss = 0.01f}, .k = 1}};
  const SplitText split = split_by_passage(text);
  print_section("Mixtures and dense models on the same tokens");
  print_paragraph(fmt::format("{} steps of {} windows of {} bytes, {} layers, E = {}, {} seeds.",
                              steps, B, T, L, E, seeds));
  fmt::print("\n");
  Table table({"what", ">parameters", ">active", ">held-out loss", ">least", ">most", ">dropped",
               ">largest load", ">ms a step"});
  for (const MixtureSide& side : sides) {
    std::vector<double> losses;
    double ms = 0, dropped = 0, largest = 0;
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
      const MixtureRun run = train(side, split, L, steps, seed);
      losses.push_back(run.held_out);
      ms += 1e3 * run.seconds_a_step / double(seeds), dropped += run.dropped / double(seeds);
      largest = std::max(largest, double(xt::amax(run.loads)()));
    }
    double mean = 0;
    for (const double loss : losses) mean += loss / double(seeds);
    const Config config = config_of(side, L);
    const bool dense = side.dense_F > 0;
    table.add({side.name, with_commas(total(count_parameters(config))),
               with_commas(active_parameters(config)), fmt::format("{:.3f}", mean),
               fmt::format("{:.3f}", std::ranges::min(losses)),
               fmt::format("{:.3f}", std::ranges::max(losses)),
               dense ? "" : fmt::format("{:.1f} %", 100 * dropped),
               dense ? "" : fmt::format("{:.1f} %", 100 * largest), fmt::format("{:.1f}", ms)});
  }
  table.print();
  return 0;
}

}  // namespace t2t
