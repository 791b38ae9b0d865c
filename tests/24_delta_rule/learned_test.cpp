// What must be true of the model that learns to look values up: its task, the rules of its heads,
// and its gradients.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "13_training/backward/cross_entropy.hpp"
#include "13_training/differences.hpp"
#include "24_delta_rule/delta_in_double.hpp"
#include "24_delta_rule/learned/learn_recall.hpp"
#include "support/all_close.hpp"
#include "support/hashed_numbers.hpp"
#include "support/refuses.hpp"

namespace t2t::learned_recall_test {

using std::size_t;

static constexpr double u = 0x1p-24;  // one rounding of a number up to 1

TEST_CASE("a sequence writes each key as often as asked, asks for each once, and wants the last") {
  const PairsTask task{.pairs = 5, .times = 3, .symbols = 8};
  Random random(1);
  for (int n = 0; n < 20; ++n) {
    const PairsText text = draw_pairs_text(task, random);
    REQUIRE(text.ids.size() == task.T());
    REQUIRE(text.targets.size() == task.T());
    std::vector<int> last(task.symbols, -1), written(task.symbols, 0);
    for (size_t i = 0; i < 2 * 5 * 3; i += 2) {
      REQUIRE(text.ids[i] < 8);
      REQUIRE(text.ids[i + 1] >= 8);
      REQUIRE(text.ids[i + 1] < 16);
      last[size_t(text.ids[i])] = text.ids[i + 1], ++written[size_t(text.ids[i])];
      CHECK(text.targets[i] == not_learned);
      CHECK(text.targets[i + 1] == not_learned);
    }
    std::set<int> asked;
    for (size_t i = 2 * 5 * 3; i < text.ids.size(); ++i) {
      CHECK(written[size_t(text.ids[i])] == 3);
      CHECK(text.targets[i] == last[size_t(text.ids[i])]);
      asked.insert(text.ids[i]);
    }
    CHECK(asked.size() == 5);
  }
}

TEST_CASE("by hand: what each rule reads of two equal keys and a query like them") {
  // q has length 1/√D, and D is 1: all products are 1. Attention weighs both values alike, linear
  // attention adds them up, and the delta rule with β = 1 replaces the first.
  const DeltaLayerSettings s{.C = 1, .H = 1, .D = 1, .Dv = 1};
  const DeltaTokens tokens{{{1}, {1}}, {{1}, {1}}, {{2}, {4}}, {0, 0}, {1, 1}};
  const auto last = [&](Mixer mixer) { return head_rule(mixer, s).forward(tokens)(1, 0); };
  CHECK(last(Mixer::attention) == doctest::Approx(3));
  CHECK(last(Mixer::window) == doctest::Approx(3));
  CHECK(last(Mixer::linear) == doctest::Approx(6));
  CHECK(last(Mixer::delta) == doctest::Approx(4));
}

TEST_CASE("a window hides what lies 16 tokens back, and linear attention does not fade") {
  const DeltaLayerSettings s{.C = 1, .H = 1, .D = 3, .Dv = 3};
  const size_t T = recall_window + 3;
  DeltaTokens tokens = made_tokens(T, 3, 3), changed = tokens;
  for (size_t d = 0; d < 3; ++d) changed.v(2, d) += 1;
  changed.g.fill(-1);
  const auto rows = [&](Mixer mixer, const DeltaTokens& of) {
    return rows_of(head_rule(mixer, s).forward(of), T - 1, 1);
  };
  CHECK(all_close(rows(Mixer::window, changed), rows(Mixer::window, tokens), 0));
  CHECK_FALSE(bool(all_close(rows(Mixer::attention, changed), rows(Mixer::attention, tokens), 0)));
  changed.v = tokens.v;
  CHECK(all_close(rows(Mixer::linear, changed), rows(Mixer::linear, tokens), 0));
}

/// A model whose layers have the rules to be checked, and a text.
struct Example {
  PairsTask task{.pairs = 3, .times = 2, .symbols = 4};
  RecallModel model;
  PairsText text;

  explicit Example(const std::vector<Mixer>& mixers) {
    Random random(5);
    model =
        draw_recall_model({.C = 6, .H = 2, .D = 3, .Dv = 3, .chunk = 4}, task.V(), mixers, random);
    text = draw_pairs_text(task, random);
  }
};

/// Σ loss, with a softmax in float64 of the float logits.
static double loss_of(const RecallModel& model, const PairsText& text) {
  const Tensor<2> logits = recall_logits(model, text);
  double loss = 0;
  size_t i = 0;
  for (const int target : text.targets) {
    if (target == not_learned) continue;
    double sum = 0;
    for (const float logit : row(logits, i)) sum += std::exp(double(logit));
    loss += std::log(sum) - double(logits(i++, size_t(target)));
  }
  return loss;
}

TEST_CASE("every tensor's gradient is the loss's slope along it, with each rule") {
  for (const std::vector<Mixer>& mixers : {std::vector{Mixer::attention, Mixer::window},
                                           {Mixer::linear, Mixer::delta},
                                           {Mixer::delta, Mixer::attention}}) {
    Example example(mixers);
    RecallModel gradients = zeros_like(example.model);
    const double loss = recall_loss(example.model, example.text, 1, gradients);
    CHECK(loss == doctest::Approx(loss_of(example.model, example.text)));
    const std::vector<ListedTensor> weights = tensors_of(example.model),
                                    slopes = tensors_of(gradients);
    for (size_t i = 0; i < weights.size(); ++i) {
      const std::string tensor = full_name(weights[i].info);
      CAPTURE(tensor);
      // Along the gradient g, with a step of h·g/|g| to either side, the slope is |g|.
      double norm = 0;
      for (const float g : slopes[i].numbers) norm += double(g) * g;
      norm = std::sqrt(norm);
      if (norm == 0) continue;
      const double h = std::min(3e-3, 0.01 / norm);  // the loss changes by 0.02 at most
      const std::vector<float> at(weights[i].numbers.begin(), weights[i].numbers.end());
      double losses[2];
      for (const int side : {0, 1}) {
        for (size_t j = 0; j < at.size(); ++j)
          weights[i].numbers[j] =
              at[j] + float((side ? h : -h) * double(slopes[i].numbers[j]) / norm);
        losses[side] = loss_of(example.model, example.text);
      }
      std::ranges::copy(at, weights[i].numbers.begin());
      // Float logits up to 8 are off by some roundings, a hundred of which come to 8·100·u, and the
      // loss of 3 answers by 3 times that. h² times the third derivative is a few percent.
      const double rounded = 3 * 800 * u;
      CHECK(std::abs((losses[1] - losses[0]) / (2 * h) - norm) <= rounded / h + 0.05 * norm);
    }
  }
}

TEST_CASE("what a rule does not read has no gradient") {
  Example example({Mixer::attention, Mixer::linear});
  RecallModel gradients = zeros_like(example.model);
  recall_loss(example.model, example.text, 1, gradients);
  for (const RecallLayer& layer : gradients.layers) {
    CHECK(all_close(layer.mix.w_beta, zeros(2, 6), 0));
    CHECK(all_close(layer.mix.w_gate, zeros(2, 6), 0));
    CHECK(all_close(as_matrix(layer.mix.a), zeros(1, 2), 0));
    CHECK(all_close(as_matrix(layer.mix.b), zeros(1, 2), 0));
  }
}

TEST_CASE("by hand: what a layer keeps of 24 tokens") {
  const DeltaLayerSettings s{.C = 32, .H = 2, .D = 8, .Dv = 8};
  CHECK(kept_elements(Mixer::attention, s, 24) == 24 * 32);
  CHECK(kept_elements(Mixer::window, s, 24) == 16 * 32);
  CHECK(kept_elements(Mixer::window, s, 12) == 12 * 32);
  CHECK(kept_elements(Mixer::linear, s, 24) == 128);
  CHECK(kept_elements(Mixer::delta, s, 24) == 128);
}

TEST_CASE("training is repeated bit by bit, and finds more than a guess") {
  const RecallOptions options{
      .kind = "hybrid", .task = {.pairs = 2, .symbols = 4}, .steps = 100, .rate = 0.02f};
  const RecallResult once = learn_recall(options), again = learn_recall(options);
  CHECK(once.share == again.share);
  CHECK(once.steps == again.steps);
  CHECK(once.share > 0.35);  // a guess finds 1 in 4
}

TEST_CASE("tasks and kinds that can't be are refused by name") {
  REFUSES(expect_pairs({.pairs = 33}), "pairs of a key and a value: wanted 1 to 32, got 33");
  REFUSES(expect_pairs({.pairs = 2, .times = 0}),
          "times that each key is written: wanted at least 1, got 0");
  REFUSES(mixers_of("rwkv"),
          "kind of model: wanted attention, window, linear, delta or hybrid, got rwkv");
  REFUSES(learn_recall({.kind = "delta", .task = {.pairs = 2}, .steps = 0}),
          "steps: wanted at least 1, got 0");
  REFUSES(learn_recall({.kind = "delta", .task = {.pairs = 2}, .rate = 0}),
          "rate, the learning rate at its peak: wanted more than 0, got 0");
  REFUSES(head_rule(Mixer::delta, {.C = 1, .H = 1, .D = 3, .Dv = 2}),
          "Dv, the width of values: wanted D = 3, got 2");
}

}  // namespace t2t::learned_recall_test
