// What must be true of a mixture in a model: trained, used with a cache, and counted.
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "09_language_model/fast/forward.hpp"
#include "13_training/along_gradient.hpp"
#include "13_training/backward/model_backward.hpp"
#include "13_training/differences.hpp"
#include "13_training/trainer/trainer.hpp"
#include "14_mixture_of_experts/model/mixture_counts.hpp"
#include "14_mixture_of_experts/model/mixture_network.hpp"
#include "support/all_close.hpp"
#include "support/lists.hpp"
#include "support/refuses.hpp"

namespace t2t::model_test {

using std::size_t;

static Config mixture_config() {
  Config config{.block = llama_style(32, 4, 2, 64), .L = 2, .V = 40, .T_max = 24};
  config.block.experts = 4, config.block.chosen = 2;
  return config;
}

TEST_CASE("in a model: the loss grows along all gradients, those of the balance included") {
  const Config config = mixture_config();
  Random random(3);
  const ModelWeights weights = draw_model(config, random);
  Batch batch = make_batch(2, 9);
  for (size_t t = 0; t < 18; ++t)
    batch.ids[t] = int(t * 7 % 40), batch.targets[t] = int(t * 5 % 40);
  for (const Balance& balance : {Balance{}, Balance{.switch_loss = 2, .z_loss = 0.1f}}) {
    TrainedExperts experts(2, 4, Scoring::softmax, balance);
    TrainingFunctions functions;
    functions.network = experts.network();
    Gradients passes(config, 2, 9, functions);
    ModelWeights gradients = zeros_of(config), unused = zeros_of(config);
    passes.add(Model(config, weights), batch, 1.0f / 18, gradients);
    double of_layers = 0;  // each layer is balanced by itself
    for (size_t l = 0; l < 2; ++l) {
      Tensor<2> dp = zeros(18, 4), dscores = dp;
      of_layers += balance_loss(experts.routed(l), balance.switch_loss, dp) +
                   z_loss(experts.routed(l), balance.z_loss, dscores);
    }
    CHECK(passes.extra_loss() == doctest::Approx(of_layers));
    // At 5e-4 one token's choice already changes, and the loss jumps. Two losses of about 4 nats
    // are rounded by 5e-7 each, which is half a percent of 1e-4 at most.
    const double slope = slope_along(gradients, config, weights, 1e-4, [&](const Model& moved) {
      const double loss = passes.add(moved, batch, 1.0f / 18, unused);
      return loss / 18 + passes.extra_loss();
    });
    CHECK(std::abs(slope - 1) < 5e-3);
  }
}

TEST_CASE("in a model: trained, and used with a cache, its logits are the same") {
  const Config config = mixture_config();
  Random random(5);
  std::vector<int> text;
  for (int t = 0; t < 400; ++t) text.push_back(t * t % 37);
  TrainedExperts experts(2, 4, Scoring::softmax, {.switch_loss = 0.01f});
  TrainingHooks hooks;
  hooks.functions.network = experts.network();
  Trainer trainer(Model(config, draw_model(config, random)),
                  {.B = 4, .T = 16, .schedule = {.peak = 1e-2f, .warmup = 5}}, text, hooks);
  const double before = trainer.loss_of(text);
  for (int step = 0; step < 30; ++step) trainer.step();
  CHECK(trainer.loss_of(text) < before / 2);
  for (size_t l = 0; l < 2; ++l)
    CHECK(xt::sum(xt::row(experts.loads(), long(l)))() == doctest::Approx(1));

  const Ids ids = {3, 1, 4, 1, 5, 9, 2, 6};
  StateOptions options;
  options.network = experts_network();
  ModelState at_once(config, 8, options), one_by_one(config, 8, options);
  Tensor<2> want = empty(8, config.V), got = want;
  forward_all(trainer.model(), at_once, ids, want);
  for (size_t t = 0; t < 8; ++t)
    forward(trainer.model(), one_by_one, std::span(ids).subspan(t, 1), row(got, t));
  CHECK(all_close(got, want, 1e-4));
}

TEST_CASE("what a token uses: the active parameters of published models") {
  for (const PublishedMixture& model : published_mixtures())
    if (model.name == "Mixtral 8x7B") CHECK(active_parameters(model.config) == 12'879'925'248);
  CHECK(experts_touched(8, 2, 1) == 2);
  CHECK(experts_touched(8, 2, 2) == doctest::Approx(8 - 4.5));
  CHECK(experts_touched(64, 8, 100000) == doctest::Approx(64));
  REFUSES(experts_touched(8, 9, 1), "k, the experts of a token: wanted 1 to E = 8, got 9");
}

}  // namespace t2t::model_test
