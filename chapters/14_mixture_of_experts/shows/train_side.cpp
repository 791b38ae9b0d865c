#include "14_mixture_of_experts/shows/train_side.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <span>
#include <vector>

#include "01_embedding/embedding.hpp"
#include "13_training/trainer/trainer.hpp"
#include "14_mixture_of_experts/model/mixture_network.hpp"
#include "program/print.hpp"
#include "program/progress.hpp"
#include "timing/measure.hpp"

namespace t2t {

static constexpr std::size_t B = windows_of_side, T = bytes_of_window;

static std::size_t kind_of(int byte) {
  if (byte >= 'a' && byte <= 'z') return 0;
  if (byte >= 'A' && byte <= 'Z') return 1;
  if (byte >= '0' && byte <= '9') return 2;
  return byte == ' ' || byte == '\n' ? 3 : 4;
}

/// How many different experts are among these.
static std::size_t different(std::span<const std::size_t> experts, std::size_t E) {
  std::vector<bool> is_there(E, false);
  for (const std::size_t e : experts) is_there[e] = true;
  return std::size_t(std::ranges::count(is_there, true));
}

/// Counts the experts chosen for each kind of byte, and the different experts of tokens in a row.
static void count_choices(const Batch& batch, std::span<const std::size_t> experts, std::size_t k,
                          MixtureRun& run) {
  for (std::size_t choice = 0; choice < experts.size(); ++choice)
    if (batch.targets[choice / k] != not_learned)
      run.of_kinds(experts[choice], kind_of(batch.ids[choice / k])) += 1;
  for (std::size_t i = 0; i < tokens_in_a_row.size(); ++i) {
    const std::size_t row = tokens_in_a_row[i] * k, rows = experts.size() / row;
    for (std::size_t r = 0; r < rows; ++r)
      run.touched(i) +=
          float(different(experts.subspan(r * row, row), run.of_kinds.shape(0))) / float(rows);
  }
}

/// What the last layer chooses for a text.
static void look_at_choices(const Model& model, TrainedExperts& experts, std::span<const int> ids,
                            MixtureRun& run) {
  const BlockSettings& block = model.config().block;
  TrainingFunctions functions;
  functions.network = experts.network();
  Gradients passes(model.config(), B, T, functions);
  Batch batch = make_batch(B, T);
  run.of_kinds = xt::zeros<float>({block.experts, kinds_of_bytes.size()});
  run.touched = xt::zeros<float>({tokens_in_a_row.size()});
  float batches = 0;
  for (std::size_t first = 0; fill_in_order(batch, ids, first); first += B * T, ++batches) {
    passes.loss(model, batch);
    count_choices(batch, experts.routed(model.config().L - 1).experts, block.chosen, run);
  }
  const Tensor<1> of_kind = xt::sum(run.of_kinds, {0});
  run.of_kinds /= xt::maximum(of_kind, 1.0f);
  run.touched /= batches;
}

Config config_of(const MixtureSide& side, std::size_t L) {
  Config config{.block = llama_style(64, 4, 4, side.F), .L = L, .V = 256, .T_max = T, .tied = true};
  if (side.is_dense()) return config;
  config.block.experts = side.experts, config.block.chosen = side.k;
  config.block.normalized = side.normalized, config.block.shared = side.shared;
  return config;
}

MixtureRun train_side(const MixtureSide& side, const SplitText& text, std::size_t L,
                      std::size_t steps, std::uint64_t seed) {
  steps = std::size_t(double(steps) * side.more_steps);
  const std::vector<int> train_ids = byte_ids(text.train), held_out = byte_ids(text.held_out);
  const Config config = config_of(side, L);
  Random random(seed);
  const std::size_t E = side.experts;
  TrainedExperts experts(L, std::max<std::size_t>(E, 1), Scoring::softmax, side.balance);
  TrainingOptions options{.B = B, .T = T, .seed = seed};
  options.schedule = {8e-3f, 8e-4f, steps / 10, steps};
  TrainingHooks hooks;
  if (!side.is_dense()) hooks.functions.network = experts.network();
  Trainer trainer(Model(config, draw_model(config, random)), options, train_ids, hooks);

  MixtureRun run{0, 0, 0, xt::zeros<float>({L, std::max<std::size_t>(E, 1)}), {}, {}};
  const std::size_t last = std::min<std::size_t>(steps, 50);
  const auto began = std::chrono::steady_clock::now();
  for (std::size_t n = 0; n < steps; ++n) {
    const StepReport step = trainer.step();
    if (!side.is_dense()) experts.after_step();
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
  if (!side.is_dense()) look_at_choices(trainer.model(), experts, held_out, run);
  show_progress("");
  return run;
}

}  // namespace t2t
