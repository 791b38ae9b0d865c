// Chapter 20: training on several ranks, each of which has a part of the model.
#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <vector>

#include "09_language_model/cases.hpp"
#include "13_training/trainer/trainer.hpp"
#include "19_ranks/on_ranks.hpp"
#include "20_split_models/tensor_parallel/shard_weights.hpp"
#include "20_split_models/tensor_parallel/split_trainer.hpp"
#include "support/refuses.hpp"

namespace t2t::split_training_tests {

using Floats = std::vector<float>;
constexpr std::size_t T = 13, steps = 20;

static std::vector<int> tiny_ids() {
  std::vector<int> ids;
  for (int n = 0; n < 600; ++n) ids.push_back((7 * n * n + 3 * n + 5) % 53);
  return ids;
}
static TrainingOptions options_of(float dropout = 0) {
  TrainingOptions options{.B = 2, .T = T, .parts = 2, .dropout = dropout, .seed = 5};
  options.schedule = {.peak = 3e-3f, .floor = 3e-4f, .warmup = 2, .steps = steps};
  return options;
}

/// Eight key heads with one query head each, or four of three: both divide unevenly.
static Config config_of(std::size_t H, std::size_t G, bool tied) {
  Config config{.block = {.C = 24, .H = H, .G = G, .D = 4, .F = 41}, .L = 2, .V = 53, .T_max = T};
  config.tied = tied;
  return config;
}
static Config gpt2_config() {
  return resized(preset("gpt2"), {.C = 24, .L = 2, .H = 5, .G = 5, .D = 4, .V = 53, .T_max = T});
}
static ModelWeights weights_of(const Config& config) {
  Random random(3);
  ModelWeights weights = draw_model(config, random);
  for_each_tensor(weights, config, [&]<class Stored>(const TensorInfo& info, Stored& tensor) {
    if constexpr (!std::is_same_v<Stored, Weight>)
      if (info.role == Role::bias) tensor = 0.1f * random.normal<1>({info.size()});
  });
  return weights;
}

static Floats all_numbers(ModelWeights& weights, const Config& config) {
  Floats all;
  for (const ListedTensor& tensor : tensors_of(weights, config))
    all.insert(all.end(), tensor.numbers.begin(), tensor.numbers.end());
  return all;
}

TEST_CASE("on one rank it gives chapter 13's bits: losses, norms and weights of five steps") {
  for (const Config& config : {config_of(8, 8, true), config_of(12, 4, false), gpt2_config()}) {
    const OnRanks got = on_ranks(1, [&](const Communicator& ranks) -> Floats {
      const std::vector<int> ids = tiny_ids();
      const ModelWeights weights = weights_of(config);
      SplitTrainer split(ranks, config, weights, options_of(0.1f), ids);
      Trainer whole(Model(config, weights), options_of(0.1f), ids);
      Floats equal;
      for (std::size_t n = 0; n < 5; ++n) {
        const StepReport a = split.step(), b = whole.step();
        equal.push_back(a.loss == b.loss);
        equal.push_back(std::abs(a.gradient_norm - b.gradient_norm) <= 0x1p-40 * b.gradient_norm);
      }
      ModelWeights a = split.model().weights(), b = whole.model().weights();
      equal.push_back(all_numbers(a, config) == all_numbers(b, config));
      return equal;
    });
    CHECK(first_wrong(got, Floats(11, 1.f)) == "");
  }
}

/// The gradients of a batch on one rank, cut as a rank's own, and the loss.
static std::pair<ModelWeights, double> gradients_of(const Config& config,
                                                    const ModelWeights& weights,
                                                    const Batch& batch) {
  ModelWeights gradients = zeros_of(config);
  Gradients passes(config, batch.B, batch.T);
  const float scale = 1 / float(count_learned(batch.targets));
  const double loss = passes.add(Model(config, weights), batch, scale, gradients);
  return {std::move(gradients), loss};
}

static Batch first_batch() {
  const std::vector<int> ids = tiny_ids();
  Batch batch = make_batch(2, T);
  fill_in_order(batch, ids, 0);
  batch.targets[3] = batch.targets[20] = not_learned;
  return batch;
}

/// The largest error of a rank's gradients, each tensor's as a share of its bound. As for chapter
/// 09's logits, a pass keeps K·u of what goes through it, there and back; an element's gradient is
/// compared with the root mean square of its tensor, and may be a few times larger. That of b_k is
/// exactly 0, since a bias of all keys changes no weight: the terms that cancel are w_k's.
static double gradient_error(const ModelWeights& got, const ModelWeights& want, const Config& whole,
                             Shard shard, const Config& own) {
  ModelWeights cut = shard_of(want, whole, shard, Tables::own_rows), mine = got;
  const std::vector<ListedTensor> a = tensors_of(mine, own), b = tensors_of(cut, own);
  const double bound = 4 * Case{"", whole, 1}.bound(1);
  double worst = 0, rms = 0, of_w_k = 0;
  std::size_t i = 0;
  for_each_tensor(cut, whole, [&](const TensorInfo& info, const auto& tensor) {
    if (tensor.size() == 0) return;
    const auto& [of, g] = a[i];
    const ConstRow w = b[i++].numbers;
    if (piece_of(info, whole, shard).zeros) return;
    double squares = 0;
    for (const float x : w) squares += double(x) * double(x);
    rms = info.name == "b_k" ? of_w_k : std::sqrt(squares / double(w.size()));
    if (info.name == "w_k") of_w_k = rms;
    for (std::size_t k = 0; k < w.size(); ++k) {
      const double size = rms + std::abs(double(w[k]));
      const double share = std::abs(double(g[k]) - double(w[k])) / (bound * size);
      worst = std::isnan(share) ? 99 : std::max(worst, share);
    }
  });
  return worst;
}

TEST_CASE("gradients at equal weights are one rank's within the bound") {
  for (const Config& config : {config_of(8, 8, true), config_of(12, 4, false), gpt2_config()})
    for (std::size_t p = 2; p <= std::min(most_ranks, config.block.G); ++p) {
      CAPTURE(config.block.H);
      CAPTURE(p);
      const OnRanks got = on_ranks(p, [&](const Communicator& ranks) -> Floats {
        const Shard shard = {ranks.rank, ranks.size};
        const ModelWeights weights = weights_of(config);
        const Batch batch = first_batch();
        const auto [want, want_loss] = gradients_of(config, weights, batch);
        const Config own = trained_config_of(config, shard);
        const Model model(own, trained_shard_of(weights, config, shard));
        SplitGradients passes(ranks, config, batch.B, batch.T);
        ModelWeights gradients = zeros_of(own);
        const Sent before = sent();
        const double loss =
            passes.add(model, batch, 1 / float(count_learned(batch.targets)), gradients);
        const Sent counted = sent() - before;
        const bool as_formula =
            counted == split_gradients_cost(config, batch.B * batch.T, ranks.size, ranks.rank);
        return {float(gradient_error(gradients, want, config, shard, own)),
                float(std::abs(loss - want_loss) / want_loss / Case{"", config, 1}.bound(1)),
                as_formula ? 1.f : 0.f};
      });
      REQUIRE(got.error == "");
      for (const Floats& of_rank : got.results) {
        CHECK(of_rank[0] <= 1);
        CHECK(of_rank[1] <= 1);
        CHECK(of_rank[2] == 1);
      }
    }
}

/// The losses of a run on one rank, whose weights first change by a rounding each, or not.
static std::vector<double> losses_alone(const Config& config, std::uint64_t seed) {
  const std::vector<int> ids = tiny_ids();
  ModelWeights weights = weights_of(config);
  Random random(seed);
  if (seed > 0)
    for (const ListedTensor& tensor : tensors_of(weights, config))
      for (float& w : tensor.numbers)
        w *= 1 + (random.next_uniform() < 0.5 ? 1.f : -1.f) * 0x1p-23f;
  Trainer trainer(Model(config, weights), options_of(), ids);
  std::vector<double> losses;
  for (std::size_t n = 0; n < steps; ++n) losses.push_back(trainer.step().loss);
  return losses;
}

TEST_CASE("twenty losses stay as close to one rank's as those of weights changed by a rounding") {
  const Config config = config_of(8, 8, true);
  const std::vector<double> want = losses_alone(config, 0);
  std::vector<double> spread(steps);
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    const std::vector<double> other = losses_alone(config, seed);
    for (std::size_t n = 0; n < steps; ++n)
      spread[n] = std::max({spread[n], n > 0 ? spread[n - 1] : 0, std::abs(other[n] - want[n])});
  }
  for (const std::size_t p : {2, 3, 5}) {
    const OnRanks got = on_ranks(p, [&](const Communicator& ranks) {
      const std::vector<int> ids = tiny_ids();
      SplitTrainer trainer(ranks, config, weights_of(config), options_of(), ids);
      Floats worst = {0};
      double norm = 0;
      for (std::size_t n = 0; n < steps; ++n) {
        const StepReport step = trainer.step();
        worst[0] = std::max(worst[0], float(std::abs(step.loss - want[n]) / (8 * spread[n])));
        norm += step.gradient_norm;
      }
      // What all ranks have: the gains, after twenty steps, and the sum of the norms.
      const Tensor<1>& gain = trainer.model().weights().blocks[1].attention_norm.gain;
      worst.push_back(float(norm));
      worst.insert(worst.end(), gain.begin(), gain.end());
      return worst;
    });
    REQUIRE(got.error == "");
    for (const Floats& of_rank : got.results) {
      CHECK(of_rank[0] <= 1);
      CHECK(std::equal(of_rank.begin() + 1, of_rank.end(), got.results[0].begin() + 1));
    }
  }
}

TEST_CASE("biases that another rank adds stay zeros, and the norm counts every gradient once") {
  const Config config = gpt2_config();
  const OnRanks got = on_ranks(2, [&](const Communicator& ranks) -> Floats {
    const std::vector<int> ids = tiny_ids();
    const ModelWeights weights = weights_of(config);
    SplitTrainer split(ranks, config, weights, options_of(), ids);
    Trainer whole(Model(config, weights), options_of(), ids);
    const double a = split.step().gradient_norm, b = whole.step().gradient_norm;
    const Tensor<1>& bias = split.model().weights().blocks[0].b_o;
    const float zeros = std::ranges::all_of(bias, [](float x) { return x == 0; }) ? 1.f : 0.f;
    return {float(std::abs(a - b) / b / (4 * Case{"", config, 1}.bound(1))), zeros};
  });
  REQUIRE(got.error == "");
  for (const Floats& of_rank : got.results) CHECK(of_rank[0] <= 1);
  CHECK(got.results[0][1] == 0);
  CHECK(got.results[1][1] == 1);
}

TEST_CASE("what can't be trained on several ranks is refused by name") {
  REFUSES(trained_config_of(config_of(12, 4, true), {0, 5}),
          "ranks that train: wanted at most G = 4, got 5");
  Config norms = config_of(8, 8, true);
  norms.block.head_norms = true;
  REFUSES(trained_config_of(norms, {0, 2}),
          "head_norms: wanted none in training on several ranks, since all heads share the gains");
}

}  // namespace t2t::split_training_tests
