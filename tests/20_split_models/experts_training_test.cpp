// Chapter 20: a mixture of experts is trained on several ranks, each of which has some experts.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "09_language_model/cases.hpp"
#include "14_mixture_of_experts/model/mixture_network.hpp"
#include "19_ranks/counting/costs.hpp"
#include "19_ranks/on_ranks.hpp"
#include "20_split_models/expert_parallel/exchange_costs.hpp"
#include "20_split_models/expert_parallel/expert_ranges.hpp"
#include "20_split_models/expert_parallel/expert_trainer.hpp"
#include "20_split_models/expert_parallel/experts_elsewhere.hpp"
#include "support/refuses.hpp"

namespace t2t::experts_training_tests {

using Floats = std::vector<float>;
constexpr std::size_t T = 13, B = 2, E = 5, steps = 20;

static std::vector<int> tiny_ids() {
  std::vector<int> ids;
  for (int n = 0; n < 600; ++n) ids.push_back((7 * n * n + 3 * n + 5) % 53);
  return ids;
}
static Config tiny_config() {
  Config config{.block = {.C = 24, .H = 4, .G = 2, .D = 6, .F = 21}, .L = 2, .V = 53, .T_max = T};
  config.block.experts = E, config.block.chosen = 2;
  config.tied = true;
  return config;
}
static ModelWeights drawn(std::uint64_t rounded = 0) {
  Random random(3), other(rounded);
  ModelWeights weights = draw_model(tiny_config(), random);
  if (rounded > 0)
    for (const ListedTensor& tensor : tensors_of(weights, tiny_config()))
      for (float& w : tensor.numbers) w *= 1 + (other.next_uniform() < 0.5 ? 1.f : -1.f) * 0x1p-23f;
  return weights;
}

/// A step has B windows for each of p ranks; one rank has them all in one part.
static TrainingOptions options_of(std::size_t p, std::size_t parts, double clip = 1) {
  TrainingOptions options{.B = B * p / parts, .T = T, .parts = parts, .clip = clip, .seed = 5};
  options.schedule = {.peak = 1e-2f, .floor = 1e-3f, .warmup = 2, .steps = steps};
  return options;
}

/// Chapter 14's mixture in chapter 13's trainer, on one rank.
struct Alone {
  std::vector<int> ids = tiny_ids();
  TrainedExperts experts;
  Trainer trainer;

  explicit Alone(std::size_t p, std::uint64_t rounded = 0)
      : experts(tiny_config().L, E, Scoring::softmax, {}),
        trainer(Model(tiny_config(), drawn(rounded)), options_of(p, 1), ids, hooks()) {}

 private:
  TrainingHooks hooks() {
    TrainingHooks hooks;
    hooks.functions.network = experts.network();
    return hooks;
  }
};

/// The gradients of the first step's batch on one rank.
static ModelWeights gradients_alone(std::size_t p, const Balance& balance) {
  const std::vector<int> ids = tiny_ids();
  const TrainingOptions options = options_of(p, 1);
  TrainedExperts experts(tiny_config().L, E, Scoring::softmax, balance);
  Windows windows(ids, T, options.seed);
  Batch batch = make_batch(options.B, T);
  windows.fill(batch, 0);
  ModelWeights gradients = zeros_of(tiny_config());
  Gradients passes(tiny_config(), options.B, T, {.network = experts.network()});
  passes.add(Model(tiny_config(), drawn()), batch, 1 / float(options.B * T), gradients);
  return gradients;
}

/// The largest error of a rank's gradients, each tensor's as a share of its bound. As for chapter
/// 09's logits, a pass keeps K·u of what goes through it, there and back; an element's gradient is
/// compared with the root mean square of its tensor, and may be a few times larger.
static double gradient_error(const ExpertTrainer& trainer, ModelWeights& want) {
  const double bound = 4 * Case{"", tiny_config(), 1}.bound(1);
  double worst = 0;
  auto got = trainer.gradients().begin();
  for_each_tensor(want, tiny_config(), [&](const TensorInfo& info, auto& tensor) {
    if (got == trainer.gradients().end() || full_name(got->info) != full_name(info)) return;
    const Row g = (got++)->numbers, w = numbers_of(tensor);
    double squares = 0;
    for (const float x : w) squares += double(x) * double(x);
    const double rms = std::sqrt(squares / double(w.size()));
    for (std::size_t i = 0; i < w.size(); ++i) {
      if (g[i] == w[i]) continue;  // such as the zeros of an expert without tokens
      const double share =
          std::abs(double(g[i]) - double(w[i])) / (bound * (rms + std::abs(double(w[i]))));
      worst = std::isnan(share) ? 99 : std::max(worst, share);
    }
  });
  return got == trainer.gradients().end() ? worst : 99;
}

TEST_CASE("the gradients of a step are one rank's within the bound, also with a capacity") {
  for (const double slack : {0.0, 1.0})
    for (std::size_t p = 1; p <= most_ranks; ++p) {
      CAPTURE(slack);
      CAPTURE(p);
      const OnRanks got = on_ranks(p, [&](const Communicator& ranks) -> Floats {
        const std::vector<int> ids = tiny_ids();
        ExpertTrainer trainer(ranks, tiny_config(), drawn(), options_of(p, p, 0), ids,
                              {slack, CapacityOf::all_ranks});
        trainer.step();
        ModelWeights want = gradients_alone(p, {.slack = slack});
        return {float(gradient_error(trainer, want)), float(trainer.gradients().size())};
      });
      CHECK(got.error == "");
      if (!got.error.empty()) return;
      for (std::size_t r = 0; r < p; ++r) {
        CHECK(got.results[r][0] <= 1);
        // Of 2 layers: 3 tensors of each own expert, 7 others, and two tensors outside of layers.
        CHECK(got.results[r][1] == float(2 * (3 * own_experts(E, p, r).size() + 7) + 2));
      }
    }
}

TEST_CASE("twenty losses stay as close to one rank's as those of weights changed by a rounding") {
  for (const std::size_t p : {2, 3, 5}) {
    CAPTURE(p);
    std::vector<double> want, spread(steps);
    for (std::uint64_t rounded = 0; rounded <= 4; ++rounded) {
      Alone alone(p, rounded);
      for (std::size_t n = 0; n < steps; ++n) {
        const double loss = alone.trainer.step().loss;
        if (rounded == 0)
          want.push_back(loss);
        else
          spread[n] = std::max({spread[n], n > 0 ? spread[n - 1] : 0, std::abs(loss - want[n])});
      }
    }
    CHECK(want.back() < want.front() - 0.3);
    const OnRanks got = on_ranks(p, [&](const Communicator& ranks) {
      const std::vector<int> ids = tiny_ids();
      ExpertTrainer trainer(ranks, tiny_config(), drawn(), options_of(p, p), ids);
      Floats all = {0};
      double norms = 0;
      for (std::size_t n = 0; n < steps; ++n) {
        const StepReport step = trainer.step();
        all[0] = std::max(all[0], float(std::abs(step.loss - want[n]) / (8 * spread[n])));
        norms += step.gradient_norm;
      }
      // What all ranks have after twenty steps: the norms, and all tensors but the experts.
      all.push_back(float(norms));
      for (const ListedTensor& tensor : trainer.gradients())
        if (!tensor.info.expert)
          all.insert(all.end(), tensor.numbers.begin(), tensor.numbers.end());
      const Tensor<2>& router = trainer.model().weights().blocks[1].router.floats();
      all.insert(all.end(), router.begin(), router.end());
      return all;
    });
    CHECK(got.error == "");
    if (!got.error.empty()) return;
    for (const Floats& of_rank : got.results) {
      CHECK(of_rank[0] <= 1);
      CHECK(of_rank.size() == got.results[0].size());
      CHECK(std::equal(of_rank.begin() + 1, of_rank.end(), got.results[0].begin() + 1));
    }
  }
}

TEST_CASE("the norm counts every gradient once") {
  for (const std::size_t p : {1, 3}) {
    Alone alone(p);
    const double want = alone.trainer.step().gradient_norm;
    const OnRanks got = on_ranks(p, [&](const Communicator& ranks) -> Floats {
      const std::vector<int> ids = tiny_ids();
      ExpertTrainer trainer(ranks, tiny_config(), drawn(), options_of(p, p), ids);
      return {float(std::abs(trainer.step().gradient_norm - want) / want)};
    });
    CHECK(got.error == "");
    if (!got.error.empty()) return;
    for (const Floats& of_rank : got.results)
      CHECK(of_rank[0] <= 4 * Case{"", tiny_config(), 1}.bound(1));
  }
}

TEST_CASE("what a step sends is the formula's") {
  for (std::size_t p = 1; p <= most_ranks; ++p) {
    const OnRanks got = on_ranks(p, [&](const Communicator& ranks) -> Floats {
      const std::vector<int> ids = tiny_ids();
      ExpertTrainer trainer(ranks, tiny_config(), drawn(), options_of(p, p), ids);
      const Sent before = sent();
      trainer.step();
      const Sent now = sent() - before;
      // The losses of all parts, and all ranks' squares, are values of two floats.
      Sent want = tree_all_reduce_cost(2 * p, p, ranks.rank);
      want += want;
      for (std::size_t l = 0; l < tiny_config().L; ++l) {
        const Tensor<2> counts = counts_of_ranks(ranks, trainer.experts().kept(l).exchange.home, E);
        const Sent rows = rows_cost(counts, tiny_config().block.C, ranks.rank);
        want += counts_cost(E, p, ranks.rank) + rows + rows;
      }
      for (const ListedTensor& tensor : trainer.gradients())
        if (!tensor.info.expert) want += ring_all_reduce_cost(tensor.numbers.size(), p, ranks.rank);
      return {float(now.messages), float(want.messages), float(now.bytes), float(want.bytes)};
    });
    CHECK(got.error == "");
    if (!got.error.empty()) return;
    for (const Floats& of_rank : got.results) {
      CHECK(of_rank[0] == of_rank[1]);
      CHECK(of_rank[2] == of_rank[3]);
    }
  }
}

TEST_CASE("other ranks' experts take no memory, and can't be used") {
  const ModelWeights whole = drawn();
  const ModelWeights own = without_others_experts(whole, tiny_config(), 3, 1);  // experts 2 and 3
  const std::size_t expert = 3 * 24 * 21 * sizeof(float);
  CHECK(bytes(whole) - bytes(own) == 2 * 3 * expert);
  CHECK((own.blocks[0].experts[3].w_up.floats() == whole.blocks[0].experts[3].w_up.floats()));
  const Model model(tiny_config(), own);  // which has all shapes
  const Tensor<2> x = xt::zeros<float>({2, 24});
  REFUSES_AS(matmul_bt(x, own.blocks[1].experts[4].w_up), "an expert of another rank was used",
             std::logic_error);
}

TEST_CASE("what can't be trained is refused by name") {
  const std::vector<int> ids = tiny_ids();
  Config dense = tiny_config();
  dense.block.experts = dense.block.chosen = 0;
  Random random(1);
  const ModelWeights of_dense = draw_model(dense, random);
  REFUSES(ExpertTrainer(all_ranks(), dense, of_dense, options_of(5, 5), ids),
          "experts of a layer: wanted at least 1, got 0");
  REFUSES(ExpertTrainer(all_ranks(), tiny_config(), drawn(), options_of(4, 2), ids),
          "parts of a batch: wanted 5, one for each rank, got 2");
  const Communicator six = {all_ranks().handle, 0, 6};
  REFUSES(ExpertTrainer(six, tiny_config(), drawn(), options_of(6, 6), ids),
          "ranks: wanted at most one for each of E = 5 experts, got 6");
}

}  // namespace t2t::experts_training_tests
