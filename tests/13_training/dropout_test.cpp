// What must be true of dropout: what it leaves out, that the backward pass leaves out the same, and
// that only training does.
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "09_language_model/cases.hpp"
#include "13_training/along_gradient.hpp"
#include "13_training/cases.hpp"
#include "13_training/trainer/trainer.hpp"
#include "support/all_close.hpp"
#include "support/refuses.hpp"

using namespace t2t;
using std::size_t;

static constexpr Part part_0 = Part::attention;

/// 200 rows of 50 ones.
static Tensor<2> ones() { return xt::ones<float>({200, 50}); }
static Tensor<2> dropped(const Dropout& dropout, Part part = part_0, size_t layer = 0) {
  Tensor<2> x = ones();
  dropout_rows(dropout, part, layer, x);
  return x;
}
/// The share of numbers in which two matrices differ.
static double differing(const Tensor<2>& a, const Tensor<2>& b) {
  return double(xt::sum(xt::not_equal(a, b))()) / double(a.size());
}

TEST_CASE("dropout leaves out a share of the numbers, and makes up for it with the others") {
  for (const float p : {0.25f, 0.9f}) {
    CAPTURE(p);
    const Tensor<2> x = dropped({p, 7});
    size_t zeros = 0;
    for (const float value : x)
      if (value == 0)
        ++zeros;
      else
        CHECK(value == doctest::Approx(1 / (1 - p)).epsilon(1e-6));
    // Five deviations of the number of 10,000 that chance takes.
    const double q = double(p), deviation = std::sqrt(q * (1 - q) / 1e4);
    CHECK(std::abs(double(zeros) / 1e4 - q) < 5 * deviation);
    CHECK(std::abs(double(xt::mean(x)()) - 1) < 5 * deviation / (1 - q));
  }
  CHECK(all_close(dropped({0, 7}), ones(), 0));
}

TEST_CASE("a pass leaves out the same numbers each time; another pass, part, layer or row others") {
  const Dropout dropout{0.5f, 7};
  const Tensor<2> x = dropped(dropout);
  CHECK(all_close(dropped(dropout), x, 0));
  // Two independent choices of a half differ in half of the numbers: five deviations of 0.005.
  const auto independent = [](const Tensor<2>& a, const Tensor<2>& b) {
    CHECK(std::abs(differing(a, b) - 0.5) < 5 * std::sqrt(0.25 / double(a.size())));
  };
  independent(dropped({0.5f, 8}), x);
  independent(dropped(dropout, Part::feed_forward), x);
  independent(dropped(dropout, part_0, 1), x);
  const auto part = [&](auto rows, auto cols) { return Tensor<2>(xt::view(x, rows, cols)); };
  independent(part(xt::range(1, 200), xt::all()), part(xt::range(0, 199), xt::all()));
  independent(part(xt::all(), xt::range(1, 50)), part(xt::all(), xt::range(0, 49)));
}

TEST_CASE("a share that is no probability below 1 is refused") {
  REFUSES(dropped({1, 7}), "dropout: wanted a probability from 0 to below 1, got 1");
  REFUSES(dropped({-0.5f, 7}), "dropout: wanted a probability from 0 to below 1, got -0.5");
  REFUSES(dropped({NAN, 7}), "dropout: wanted a probability from 0 to below 1, got nan");
  REFUSES(dropped({0.5f, 7}, Part::q),
          "dropout: wanted the embedding, attention or feed_forward, got q");
}

/// 3 texts of 13 tokens.
static Batch texts(size_t V) {
  Batch batch = make_batch(3, 13);
  Ids ids;
  for (size_t n = 0; n < 40; ++n) ids.push_back(int((7 * n * n + 3 * n + 5) % V));
  fill_in_order(batch, ids, 0);
  return batch;
}

TEST_CASE("with dropout, too, the loss grows along its gradient by the square of its norm") {
  for (Case c : {llama(), gpt2()}) {
    for (const NormPlace place : {NormPlace::before, NormPlace::after}) {
      c.config.block.norm_place = place;
      CAPTURE(c.name);
      CAPTURE(int(place));
      const Batch batch = texts(c.config.V);
      const Dropout dropout{0.3f, 5};
      Gradients passes(c.config, 3, 13);
      ModelWeights gradients = zeros_of(c.config);
      const float scale = 1.0f / 39;
      const double loss = passes.add(c.model(), batch, scale, gradients, dropout);
      CHECK(std::abs(loss / passes.loss(c.model(), batch) - 1) > 1e-3);

      const double slope = slope_along(gradients, c, 4e-4, [&](const Model& model) {
        ModelWeights unused = zeros_of(c.config);
        return passes.add(model, batch, scale, unused, dropout) * double(scale);
      });
      CHECK(std::abs(slope - 1) < 2e-3);
    }
  }
}

TEST_CASE("what dropout left out of a token's vector gets no gradient") {
  const Case c = llama();
  Batch text = make_batch(1, 13);
  for (int t = 0; t < 13; ++t)  // each token once, so that each row of the table is one token's
    text.ids[size_t(t)] = 3 * t, text.targets[size_t(t)] = t;
  const Dropout dropout{0.5f, 5};
  ModelWeights gradients = zeros_of(c.config);
  Gradients(c.config, 1, 13).add(c.model(), text, 1, gradients, dropout);
  Tensor<2> kept = xt::ones<float>({size_t(13), c.config.block.C});
  dropout_rows(dropout, Part::embedding, 0, kept);
  for (size_t t = 0; t < 13; ++t)
    for (size_t i = 0; i < c.config.block.C; ++i)
      CHECK((gradients.embedding.floats()(3 * t, i) == 0) == (kept(t, i) == 0));
}

/// A rate of 0, so that steps differ in what they leave out alone, on a text whose windows are all
/// alike.
static TrainingOptions resting(size_t parts) {
  return {.B = 2,
          .T = 13,
          .parts = parts,
          .schedule = {0, 0, 1, 100},
          .adamw = {.decay = 0},
          .dropout = 0.2f};
}
static Ids one_window_again_and_again() {
  Ids ids;
  for (int i = 0; i < 400; ++i) ids.push_back(i % 13);
  return ids;
}

TEST_CASE(
    "each step and each part of its batch leaves out other numbers; a repeated run the same") {
  const Ids ids = one_window_again_and_again();
  Batch two = make_batch(2, 13);
  fill_in_order(two, ids, 0);
  const auto losses = [&] {
    Trainer trainer(llama().model(), resting(1), ids);
    std::vector<double> some;
    for (int i = 0; i < 3; ++i) some.push_back(trainer.step_on(two).loss);
    return some;
  };
  const std::vector<double> one = losses();
  CHECK(losses() == one);
  CHECK(one[0] != one[1]);
  CHECK(one[1] != one[2]);
  CHECK(one[0] != one[2]);

  Trainer whole(llama().model(), resting(1), ids), parts(llama().model(), resting(2), ids);
  const double first = whole.step().loss, both = parts.step().loss;
  CHECK(both != first);  // all windows are alike
}

TEST_CASE("nothing is left out when a loss is measured") {
  const Ids ids = one_window_again_and_again();
  TrainingOptions without = resting(1);
  without.dropout = 0;
  Trainer a(llama().model(), resting(1), ids), b(llama().model(), without, ids);
  a.step(), b.step();
  CHECK(a.loss_of(ids) == b.loss_of(ids));

  // Not only the trainer: the loss of a batch is the one that comes with gradients and no dropout.
  const Case c = llama();
  const Batch batch = texts(c.config.V);
  Gradients passes(c.config, 3, 13);
  ModelWeights gradients = zeros_of(c.config);
  CHECK(passes.loss(c.model(), batch) == passes.add(c.model(), batch, 1, gradients));
}
