// What must be true of a step of Muon, of the trainer that uses it beside AdamW, and of their
// comparison.
#include "18_experiments/muon/muon.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "13_training/cases.hpp"
#include "18_experiments/muon/compare_optimizers.hpp"
#include "18_experiments/muon/muon_trainer.hpp"
#include "18_experiments/singular_values.hpp"
#include "linalg.hpp"
#include "support/all_close.hpp"
#include "support/lists.hpp"
#include "support/refuses.hpp"

namespace t2t::muon_test {

using std::size_t;

/// How far w moved in a first step from zeros.
static Tensor<2> first_move(const Muon& muon, float rate, const Tensor<2>& g) {
  Tensor<2> w = xt::zeros_like(g), momentum = xt::zeros_like(g);
  muon_step(muon, rate, w, g, momentum);
  return w;
}

TEST_CASE("by hand: the first step of ((0, -3), (4, 0)), without and with decay") {
  const Tensor<2> g = {{0, -3}, {4, 0}};
  Tensor<2> w = {{1, 2}, {3, 4}}, decayed = w, momentum = zeros(2, 2), other = momentum;
  // The scale is 0.2·√2 = 0.282843, and the direction ((0, −0.722876), (1.119204, 0)).
  const double moved = muon_step({.decay = 0}, 0.1f, w, g, momentum);
  const Tensor<2> want = {{1, 2 + 0.0204460f}, {3 - 0.0316559f, 4}};
  // The direction is off by 4.3e-4 at most (newton_schulz_test.cpp), a step by 0.0283 times that.
  const double bound = 1.3e-5;
  CHECK(all_close(w, want, bound));
  CHECK(all_close(momentum, g, 0));
  CHECK(moved == doctest::Approx(0.0204460 * 0.0204460 + 0.0316559 * 0.0316559).epsilon(1e-3));
  // The decay takes 0.1·0.5 of each weight, and is not scaled.
  muon_step({.decay = 0.5f}, 0.1f, decayed, g, other);
  const Tensor<2> shrunk = {{0.95f, 1.9f + 0.0204460f}, {2.85f - 0.0316559f, 3.8f}};
  CHECK(all_close(decayed, shrunk, bound));
}

TEST_CASE("by hand: the second step of a row looks ahead along its momentum") {
  Tensor<2> w = zeros(1, 2), momentum = zeros(1, 2);
  const Tensor<2> first = {{4, 0}}, second = {{0, 3}}, kept = {{2, 3}};
  const Muon muon{.momentum = 0.5f, .decay = 0};
  muon_step(muon, 1, w, first, momentum);
  CHECK(all_close(momentum, first, 0));
  w = zeros(1, 2);
  muon_step(muon, 1, w, second, momentum);
  // m = 0.5·(4, 0) + (0, 3) = (2, 3), and u = (0, 3) + 0.5·m = (1, 4.5), whose norm is 4.609772.
  CHECK(all_close(momentum, kept, 0));
  // A row has one singular value. 1 becomes 0.696436, and the scale is 0.2·√2.
  const Tensor<2> want = {{-0.0427313f, -0.192291f}};
  CHECK(all_close(w, want, 1.3e-4));
}

TEST_CASE(
    "a step has the same size for every shape: 0.2·rate, times what a singular value becomes") {
  CHECK(muon_scale(16, 100) == 2);
  CHECK(muon_scale(100, 16) == 2);
  for (const std::array<size_t, 2>& shape :
       std::vector<std::array<size_t, 2>>{{1, 9}, {9, 1}, {4, 9}, {9, 4}, {6, 6}}) {
    const size_t out = shape[0], in = shape[1], m = std::min(out, in);
    CAPTURE(out);
    CAPTURE(in);
    const std::vector<double> equal(m, 3);  // each is 1/√m of the norm
    const Tensor<2> g = of_singular_values(equal, out, in);
    Tensor<2> w = zeros(out, in), momentum = zeros(out, in);
    const double moved = muon_step({.decay = 0}, 0.05f, w, g, momentum);
    const double value = after_all_steps(1 / std::sqrt(double(m)));
    // The direction is off by newton_schulz_bound in Frobenius norm, which is value·√m.
    const double off = newton_schulz_bound(m, 20) / (value * std::sqrt(double(m)));
    CHECK(std::abs(std::sqrt(moved / double(out * in)) / (0.2 * 0.05 * value) - 1) < off);
    double squares = 0;
    for (const float x : w) squares += double(x) * double(x);
    CHECK(squares == doctest::Approx(moved).epsilon(1e-5));
  }
}

TEST_CASE("without a gradient, only the decay moves a matrix") {
  Tensor<2> w = numbers(1, 2, 0, 5, 3), momentum = zeros(5, 3);
  const Tensor<2> want = w * (1 - 0.1f * 0.25f), g = zeros(5, 3);
  muon_step({.decay = 0.25f}, 0.1f, w, g, momentum);
  CHECK(all_close(w, want, 4 * 0x1p-24));
  CHECK(all_close(momentum, g, 0));
}

TEST_CASE("the gradient's factor does not matter, and a rotated gradient gives the rotated step") {
  const Tensor<2> g = of_singular_values({1, 0.8, 0.7, 0.5}, 4, 6);
  const Tensor<2> want = first_move({.decay = 0}, 1, g);
  CHECK(all_close(first_move({.decay = 0}, 1, 0x1p-40f * g), want, 0));
  const Doubles rows = orthonormal_rows(5, 4, 4);
  Tensor<2> rotation = empty(4, 4);
  std::ranges::copy(rows.numbers, rotation.begin());
  // The values are 0.32 to 0.65 of the norm, 1.543; the scale is 0.2·√6.
  const double bound = 2 * 0.49 * newton_schulz_bound(4, most_amplified(0.32, 0.65));
  CHECK(all_close(first_move({.decay = 0}, 1, matmul(rotation, g)), matmul(rotation, want), bound));
}

TEST_CASE("a step refuses other shapes, and a momentum that never ends") {
  Tensor<2> w = zeros(2, 3), momentum = zeros(2, 3), other = zeros(3, 2);
  const Tensor<2> g = zeros(2, 3);
  REFUSES(muon_step({}, 1, w, other, momentum), "g: wanted shape [2, 3], got [3, 2]");
  REFUSES(muon_step({}, 1, w, g, other), "momentum: wanted shape [2, 3], got [3, 2]");
  REFUSES(muon_step({.momentum = 1}, 1, w, g, momentum),
          "momentum, the share that is kept: wanted at least 0 and below 1, got 1");
}

static Config tiny(bool tied = false) {
  return {.block = llama_style(16, 2, 1, 24), .L = 2, .V = 61, .T_max = 8, .tied = tied};
}
static Model drawn(const Config& config = tiny()) {
  Random random(3);
  return Model(config, draw_model(config, random));
}
static TrainingOptions options(size_t B = 4, size_t parts = 1) {
  return {.B = B, .T = 8, .parts = parts, .schedule = {3e-3f, 1e-3f, 2, 60}, .seed = 9};
}
static const MuonOptions muon_options{.schedule = {2e-2f, 2e-3f, 2, 60}};

/// All matrices of the blocks, one after the other.
static Tensor<1> matrices_of(const Model& model) {
  std::vector<float> all;
  for_each_tensor(model.weights(), model.config(),
                  [&]<class Stored>(const TensorInfo& info, const Stored& tensor) {
                    if constexpr (std::is_same_v<Stored, Weight>)
                      if (info.size() > 0 && is_moved_by_muon(info))
                        all.insert(all.end(), tensor.floats().begin(), tensor.floats().end());
                  });
  Tensor<1> x = empty(all.size());
  std::ranges::copy(all, x.begin());
  return x;
}

TEST_CASE("Muon moves the matrices inside of blocks, AdamW all other tensors") {
  const Ids ids = letters();
  const MuonTrainer trainer(drawn(), options(), muon_options, ids);
  const std::vector<std::string> matrices = {"w_q",    "w_k",  "w_v",   "w_o",
                                             "w_gate", "w_up", "w_down"};
  std::vector<std::string> want, rest = {"embedding"};
  for (const std::string layer : {"layer 0: ", "layer 1: "}) {
    for (const std::string& name : matrices) want.push_back(layer + name);
    rest.push_back(layer + "attention_norm.gain"), rest.push_back(layer + "feed_forward_norm.gain");
  }
  rest.push_back("final_norm.gain"), rest.push_back("head");
  CHECK(trainer.names_of_muon() == want);
  CHECK(trainer.names_of_adamw() == rest);
  // One float a weight of Muon's: w_q and w_o 16·16, w_k and w_v 8·16, three of 24·16, in 2 layers.
  CHECK(trainer.state_floats() == 2 * (2 * 256 + 2 * 128 + 3 * 384) + 2 * (2 * 61 * 16 + 5 * 16));
}

TEST_CASE("of a mixture, Muon moves each expert's matrices alone, and not the router") {
  Config config = tiny(true);
  config.block.experts = 3, config.block.chosen = 1, config.learned_positions = true;
  config.block.biases = Biases::all, config.block.activation = Activation::gelu;
  ModelWeights weights = room_for(config);
  size_t of_experts = 0;
  for_each_tensor(weights, config, [&](const TensorInfo& info, auto&) {
    CAPTURE(full_name(info));
    const bool is_matrix = info.name.starts_with("w_");
    CHECK(is_moved_by_muon(info) == is_matrix);
    of_experts += is_matrix && info.expert ? 1 : 0;
  });
  CHECK(of_experts == 2 * 3 * 3);
}

TEST_CASE("a batch in two parts is one step: that of a batch of one part with the same windows") {
  const Ids ids = letters();
  MuonTrainer whole(drawn(), options(8), muon_options, ids);
  MuonTrainer parts(drawn(), options(4, 2), muon_options, ids);
  const StepReport want = whole.step(), got = parts.step();
  CHECK(got.loss == doctest::Approx(want.loss).epsilon(1e-6));
  CHECK(got.n == 1);
  // The gradients differ by about 2^-20 of their norm. Five steps multiply that by at most 3.97^5,
  // the largest slope up to 1.203; the step is 0.01·0.2·√24 times the result.
  CHECK(all_close(matrices_of(parts.model()), matrices_of(whole.model()), 985 * 0x1p-20 * 0.0098));
  REFUSES(MuonTrainer(drawn(), options(4, 0), muon_options, ids),
          "parts of a batch: wanted at least 1, got 0");
}

TEST_CASE("the first step starts from the loss and the gradients that AdamW's trainer has") {
  const Ids ids = letters();
  MuonTrainer muon(drawn(), options(), muon_options, ids);
  Trainer adamw(drawn(), options(), ids);
  const Tensor<1> before = matrices_of(muon.model());
  const StepReport got = muon.step(), want = adamw.step();
  CHECK(got.loss == want.loss);
  CHECK(got.gradient_norm == doctest::Approx(want.gradient_norm).epsilon(1e-5));
  CHECK(got.rate == 1e-2f);  // the first of two steps of warm-up
  double moved = 0, size = 0;
  const Tensor<1> after = matrices_of(muon.model());
  for (size_t i = 0; i < after.size(); ++i) {
    moved += std::pow(double(after(i)) - double(before(i)), 2);
    size += double(before(i)) * double(before(i));
  }
  CHECK(got.update_ratio == doctest::Approx(std::sqrt(moved / size)).epsilon(1e-4));
}

TEST_CASE("each step starts from its own gradients") {
  const Ids ids = letters();
  TrainingOptions still = options();
  still.schedule = {0, 0, 2, 60};  // no weight moves
  MuonTrainer muon(drawn(), still, {.schedule = still.schedule}, ids);
  Trainer adamw(drawn(), still, ids);
  for (int n = 0; n < 3; ++n)
    CHECK(muon.step().gradient_norm == doctest::Approx(adamw.step().gradient_norm).epsilon(1e-5));
}

TEST_CASE("clipping changes no matrix that Muon moves") {
  const Ids ids = letters();
  TrainingOptions clipped = options(), free = options();
  clipped.clip = 1e-6, free.clip = 0;
  MuonTrainer a(drawn(), clipped, muon_options, ids), b(drawn(), free, muon_options, ids);
  a.step(), b.step();
  CHECK(all_close(matrices_of(a.model()), matrices_of(b.model()), 0));
}

static std::string said_by_step(MuonTrainer& trainer) {
  try {
    trainer.step();
    return "nothing";
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

TEST_CASE("a gradient that is not finite is refused before any weight has moved") {
  const Ids ids = letters();
  Config config = tiny();
  Random random(3);
  ModelWeights weights = draw_model(config, random);
  weights.blocks[1].feed_forward.w_up.floats()(0, 0) = std::numeric_limits<float>::quiet_NaN();
  MuonTrainer trainer(Model(config, std::move(weights)), options(), muon_options, ids);
  const Tensor<2> embedding = trainer.model().weights().embedding.floats();
  const Tensor<2> w_q = trainer.model().weights().blocks[0].w_q.floats();
  CHECK(said_by_step(trainer).starts_with(
      "step 1: the gradient of layer 0: w_q is not finite (loss "));
  CHECK(all_close(trainer.model().weights().embedding.floats(), embedding, 0));
  CHECK(all_close(trainer.model().weights().blocks[0].w_q.floats(), w_q, 0));
  CHECK(trainer.steps_done() == 0);
}

TEST_CASE("a model learns a text with Muon, in the same steps each time" *
          doctest::test_suite("slow")) {
  const Ids ids = letters();
  TrainingOptions training = options(8);
  training.schedule = {1e-2f, 1e-3f, 5, 150};
  const MuonOptions matrices{.schedule = {4e-2f, 4e-3f, 5, 150}};
  MuonTrainer trainer(drawn(), training, matrices, ids), again(drawn(), training, matrices, ids);
  CHECK(trainer.loss_of(ids) > 3);
  for (int n = 0; n < 150; ++n) trainer.step(), again.step();
  CHECK(trainer.loss_of(ids) < 0.1);
  CHECK(again.loss_of(ids) == trainer.loss_of(ids));
  CHECK(trainer.steps_done() == 150);
  REFUSES(trainer.loss_of(std::span(ids).first(1)),
          "ids, a text to measure: wanted at least 2 tokens, got 1");
}

TEST_CASE("by hand: a sweep goes on until two rates in a row are no better") {
  std::vector<float> tried;
  const auto loss_at = [&](float rate) {
    tried.push_back(rate);
    return std::abs(std::log2(double(rate) / 0.02));
  };
  const std::vector<Trial> sweep = swept(0.004f, loss_at);
  CHECK(tried == std::vector<float>{0.004f, 0.002f, 0.001f, 0.008f, 0.016f, 0.032f, 0.064f});
  CHECK(std::ranges::is_sorted(sweep, {}, &Trial::rate));
  CHECK(best_of(sweep).rate == 0.016f);
}

/// Four steps of a small model.
static OptimizerRun for_comparison(float adamw_rate = 0) {
  const Config config{
      .block = llama_style(8, 2, 1, 12), .L = 1, .V = 256, .T_max = 8, .tied = true};
  return {.config = config, .steps = 4, .adamw_rate = adamw_rate, .B = 2, .T = 8};
}
static Ids text(size_t size) {
  Ids ids;
  for (size_t i = 0; i < size; ++i) ids.push_back(int(97 + i * i % 7));
  return ids;
}

TEST_CASE("each side of a comparison has its own best rates, and its seeds begin with the sweep's" *
          doctest::test_suite("slow")) {
  const Ids train = text(1200), held_out = text(200);
  const OptimizerComparison found = compare_optimizers(for_comparison(), 2, train, held_out);
  REQUIRE(found.sides.size() == 4);
  const OptimizerRun &adamw = found.sides[0].run, &muon = found.sides[1].run;
  CHECK(adamw.muon_rate == 0);
  CHECK(adamw.adamw_rate == best_of(found.adamw_sweep).rate);
  CHECK(muon.muon_rate == best_of(found.muon_sweep).rate);
  CHECK(muon.adamw_rate == best_of(found.rest_sweep).rate);
  CHECK(found.sides[0].seeds[0].held_out == best_of(found.adamw_sweep).held_out);
  CHECK(found.sides[1].seeds[0].held_out == best_of(found.rest_sweep).held_out);
  CHECK(found.sides[2].run.steps == 2);
  CHECK(found.sides[3].run.steps >= 4);
  for (const ComparedSide& side : found.sides) CHECK(side.seeds.size() == 2);
  OptimizerRun run = muon;
  run.seed = 2;
  CHECK(held_out_loss_of(run, train, held_out) == found.sides[1].seeds[1].held_out);
}

TEST_CASE(
    "both optimizers' curves have a loss for each step and begin alike, at the same weights") {
  const Ids train = text(1200);
  OptimizerRun run = for_comparison(0.01f);
  const std::vector<double> adamw = losses_of(run, train);
  run.muon_rate = 0.02f;
  const std::vector<double> muon = losses_of(run, train);
  REQUIRE(adamw.size() == 4);
  REQUIRE(muon.size() == 4);
  CHECK(adamw[0] == muon[0]);
  CHECK(adamw[3] < adamw[0]);
  CHECK(muon[3] < muon[0]);
  CHECK(adamw[3] != muon[3]);
}

TEST_CASE("a run whose weights leave the range of a float counts as infinitely bad") {
  CHECK(held_out_loss_of(for_comparison(1e30f), text(1200), text(200)) ==
        std::numeric_limits<double>::infinity());
}

}  // namespace t2t::muon_test
