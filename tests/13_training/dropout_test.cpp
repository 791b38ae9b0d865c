// What must be true of dropout: what it leaves out, that the backward pass leaves out the same, and
// that only training does.
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "04_causal_attention/fast/score_rule.hpp"
#include "06_gqa/grouped_query_attention.hpp"
#include "09_language_model/cases.hpp"
#include "13_training/along_gradient.hpp"
#include "13_training/attention/attention_backward.hpp"
#include "13_training/attention/weight_dropout.hpp"
#include "13_training/cases.hpp"
#include "13_training/trainer/trainer.hpp"
#include "support/all_close.hpp"
#include "support/hashed_numbers.hpp"
#include "support/refuses.hpp"

namespace t2t::dropout_test {

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
          "dropout: wanted the embedding, heads, attention or feed_forward, got q");
}

TEST_CASE("with dropout, too, the loss grows along its gradient by the square of its norm") {
  for (Case c : {llama(), gpt2()}) {
    for (const NormPlace place : {NormPlace::before, NormPlace::after}) {
      c.config.block.norm_place = place;
      CAPTURE(c.name);
      CAPTURE(int(place));
      const Batch batch = three_texts(c.config.V);
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

// Dropout on attention's weights: 4 heads of 8 in 2 groups, a text of 13 tokens.
static constexpr size_t T = 13, H = 4, G = 2, D = 8;
static Tensor<2> heads_of(const Dropout& dropout, const ScoreRule& rule, const Tensor<2>& q,
                          const Tensor<2>& k, const Tensor<2>& v, size_t layer = 0,
                          size_t text = 0) {
  Tensor<2> out = empty(T, H * D);
  dropped_attention({dropout, layer, text, H, G, rule}, q, k, v, out);
  return out;
}
static Tensor<2> queries() { return numbers(1, 2, 0, T, H * D); }
static Tensor<2> keys() { return numbers(2, 2, 0, T, G * D); }
static Tensor<2> values() { return numbers(3, 2, 0, T, G * D); }

TEST_CASE("without a share to leave out, attention and its gradients are chapter 06's and 13's") {
  const Tensor<2> q = queries(), k = keys(), v = values(), dout = numbers(4, 1, 0, T, H * D);
  for (const ScoreRule& rule : {ScoreRule{Mask::causal}, ScoreRule{{true, 5}, 0.3f, 1.5f}}) {
    const Tensor<2> got = heads_of({0, 7}, rule, q, k, v);
    CHECK(all_close(got, grouped_query_attention(q, k, v, H, G, rule), 1e-6));
    Tensor<2> dq = empty(T, H * D), dk = empty(T, G * D), dv = empty(T, G * D);
    const Dropout none{0, 7};
    dropped_attention_backward({none, 0, 0, H, G, rule}, {q, k, v, got, dout}, {dq, dk, dv});
    const AttentionGradients want = attention_backward(q, k, v, H, G, rule, dout);
    CHECK(all_close(dq, want.q, 1e-5));
    CHECK(all_close(dk, want.k, 1e-5));
    CHECK(all_close(dv, want.v, 1e-5));
  }
}

TEST_CASE("a query's weight of a key is left out, or divided by what is kept") {
  // Values that tell which key they are: each head's result is its row of weights.
  const Tensor<2> q = queries(), k = keys(), weights = [&] {
    return attention_weights(Tensor<2>(xt::view(q, xt::all(), xt::range(0, D))),
                             Tensor<2>(xt::view(k, xt::all(), xt::range(0, D))), Mask::causal);
  }();
  const Dropout dropout{0.25f, 7};
  size_t seen = 0, left_out = 0;
  for (size_t s = 0; s < T; ++s) {
    Tensor<2> v = xt::zeros<float>({T, G * D});
    v(s, 0) = 1;
    const Tensor<2> out = heads_of(dropout, Mask::causal, q, k, v);
    for (size_t t = s; t < T; ++t, ++seen)
      if (out(t, 0) == 0)
        ++left_out;
      else
        CHECK(out(t, 0) == doctest::Approx(weights(t, s) / 0.75f).epsilon(1e-5));
  }
  // Five deviations of what chance takes of 91 weights.
  CHECK(std::abs(double(left_out) - 0.25 * double(seen)) < 5 * std::sqrt(0.1875 * double(seen)));
}

TEST_CASE("heads, layers, texts and passes leave out weights of their own") {
  // All heads have the same queries, keys and values.
  Tensor<2> q = xt::ones<float>({T, H * D}), k = xt::ones<float>({T, G * D});
  Tensor<2> v = empty(T, G * D);
  for (size_t t = 0; t < T; ++t) xt::view(v, t, xt::all()) = float(t + 1);
  const auto result = [&](Dropout dropout, size_t layer, size_t text) {
    return heads_of(dropout, Mask::causal, q, k, v, layer, text);
  };
  const Tensor<2> one = result({0.5f, 7}, 0, 0);
  CHECK(all_close(result({0.5f, 7}, 0, 0), one, 0));
  CHECK(differing(result({0.5f, 7}, 1, 0), one) > 0.5);
  CHECK(differing(result({0.5f, 7}, 0, 1), one) > 0.5);
  CHECK(differing(result({0.5f, 8}, 0, 0), one) > 0.5);
  for (size_t h = 1; h < H; ++h)
    CHECK(differing(xt::view(one, xt::all(), xt::range(h * D, (h + 1) * D)),
                    xt::view(one, xt::all(), xt::range(0, D))) > 0.5);
}

TEST_CASE("with dropout on attention's weights, too, the loss grows along its gradient") {
  TrainingFunctions functions;
  functions.attention.drops_weights = true;
  for (const Case& c : {llama(), gpt2()}) {
    CAPTURE(c.name);
    const Batch batch = three_texts(c.config.V);
    const Dropout dropout{0.3f, 5};
    Gradients passes(c.config, 3, 13, functions), others(c.config, 3, 13);
    ModelWeights gradients = zeros_of(c.config), unused = zeros_of(c.config);
    const float scale = 1.0f / 39;
    const double loss = passes.add(c.model(), batch, scale, gradients, dropout);
    CHECK(std::abs(loss / others.add(c.model(), batch, scale, unused, dropout) - 1) > 1e-3);
    const auto loss_of = [&](const Model& model) {
      return passes.add(model, batch, scale, unused, dropout) * double(scale);
    };
    CHECK(std::abs(slope_along(gradients, c, 4e-4, loss_of) - 1) < 2e-3);
    CHECK(off_at_random(gradients, c, 1e-4, loss_of) < 2e-3);
    // Nothing is left out where a loss is measured, though a step came before.
    CHECK(passes.loss(c.model(), batch) == others.loss(c.model(), batch));
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
  const Batch batch = three_texts(c.config.V);
  Gradients passes(c.config, 3, 13);
  ModelWeights gradients = zeros_of(c.config);
  CHECK(passes.loss(c.model(), batch) == passes.add(c.model(), batch, 1, gradients));
}

}  // namespace t2t::dropout_test
