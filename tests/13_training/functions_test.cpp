// What must be true of what training can be given: a network, a rule of scores, and batches that
// are prepared before they are learned.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "09_language_model/language_model.hpp"
#include "09_language_model/loss.hpp"
#include "13_training/along_gradient.hpp"
#include "13_training/cases.hpp"
#include "13_training/trainer/trainer.hpp"
#include "support/refuses.hpp"

namespace t2t::functions_test {

using std::size_t;

TEST_CASE("a network that the caller supplies has its own backward pass and its own loss") {
  for (Case c : {llama(), gpt2()}) {
    CAPTURE(c.name);
    c.config.block.F = 0;
    const auto scaled = [](ConstMatrix x, Matrix y) {
      for (size_t t = 0; t < x.rows; ++t)
        for (size_t k = 0; k < x.cols; ++k) y.row(t)[k] = 0.5f * x.row(t)[k];
    };
    TrainingFunctions functions;
    functions.network.forward = [&](const Block&, ConstMatrix x, Matrix y, const Trace&) {
      scaled(x, y);
    };
    functions.network.backward = [&](const NetworkCall& call) {
      scaled(call.dy, call.dx);
      return 0.25 * double(call.block.layer() + 1);
    };
    const Batch batch = three_texts(c.config.V);
    Gradients passes(c.config, 3, 13, functions);
    ModelWeights gradients = zeros_of(c.config);
    passes.add(c.model(), batch, 1.0f / 39, gradients);
    CHECK(passes.extra_loss() == 0.25 * (1 + 2 + 3));
    const double slope = slope_along(
        gradients, c, 4e-4, [&](const Model& model) { return passes.loss(model, batch) / 39; });
    CHECK(std::abs(slope - 1) < 2e-3);

    c.config.block.F = 8, c.config.block.biases = Biases::none;
    c.config.block.experts = 2, c.config.block.chosen = 1;
    CHECK_NOTHROW(Gradients(c.config, 3, 13, functions));
    REFUSES(Gradients(c.config, 3, 13), "the model to train: wanted one without experts");
  }
}

TEST_CASE("scores with another factor and a cap are trained as the model computes them") {
  Case c = llama();
  c.config.block.score_scale = 0.9f, c.config.block.score_cap = 1.5f, c.config.block.window = 5;
  const Model model = c.model();
  Batch batch = three_texts(c.config.V);  // 3 texts of 13 tokens, which have 12 that follow one
  Gradients passes(c.config, 3, 13);
  double want = 0;
  for (size_t b = 0; b < 3; ++b) {
    const std::span ids = std::span(batch.ids).subspan(b * 13, 13);
    batch.targets[b * 13 + 12] = not_learned;
    for (size_t t = 0; t < 12; ++t) batch.targets[b * 13 + t] = ids[t + 1];
    want += next_token_loss(language_model(ids, model), ids) * 12;
  }
  CHECK(std::abs(passes.loss(model, batch) / want - 1) <= c.bound(1));
  ModelWeights gradients = zeros_of(c.config);
  passes.add(model, batch, 1.0f / 36, gradients);
  const double slope =
      slope_along(gradients, c, 4e-4, [&](const Model& m) { return passes.loss(m, batch) / 36; });
  CHECK(std::abs(slope - 1) < 2e-3);
}

TEST_CASE("what prepares a batch does so where a loss is measured, too") {
  const Ids ids = letters();
  const Case c = llama();
  const TrainingOptions options{.B = 4, .T = 13, .schedule = {5e-3f, 5e-3f, 1, 200}};
  std::vector<std::uint64_t> seeds;
  const auto trainer_with = [&](TrainingHooks hooks, size_t parts = 1) {
    TrainingOptions with_parts = options;
    with_parts.parts = parts;
    return Trainer(c.model(), with_parts, ids, std::move(hooks));
  };
  const auto a_for_all = [&](Batch& batch, std::uint64_t seed) {
    seeds.push_back(seed);
    std::ranges::fill(batch.targets, 40);
  };
  Trainer prepared = trainer_with({.prepare = a_for_all}), plain = trainer_with({});
  const double loss = prepared.loss_of(ids);
  CHECK(!seeds.empty());
  CHECK(std::abs(loss / plain.loss_of(ids) - 1) > 1e-3);
  CHECK(prepared.loss_of(ids) == loss);
  seeds.clear();
  prepared.step();
  REQUIRE(seeds.size() == 1);
  prepared.step();
  CHECK(seeds.at(1) != seeds[0]);
  REFUSES(trainer_with({.prepare = a_for_all}, 2),
          "parts of a batch that is prepared: wanted 1, got 2");
}

}  // namespace t2t::functions_test
