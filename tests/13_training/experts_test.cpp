// A probe of the places for experts: a mixture (Switch: one expert for each token, times its
// probability, with a loss that balances them) that is read from a file, trained, saved and read
// again, without a change to any chapter.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "07_swiglu/fast/activation_rows.hpp"
#include "07_swiglu/fast/feed_forward_rows.hpp"
#include "09_language_model/fast/forward.hpp"
#include "10_pretrained/model/tiny_model.hpp"
#include "13_training/along_gradient.hpp"
#include "13_training/backward/activation_backward.hpp"
#include "13_training/backward/linear_backward.hpp"
#include "13_training/trainer/tensor_list.hpp"
#include "13_training/trainer/trainer.hpp"
#include "linalg.hpp"
#include "support/all_close.hpp"
#include "support/lists.hpp"

namespace t2t::experts_test {

/// What the router says of some tokens.
struct Routed {
  Tensor<2> p;                      // [N, E]  probabilities
  std::vector<std::size_t> chosen;  // [N]     the likeliest expert
  Tensor<1> share;                  // [E]     of the tokens that each expert gets
  Tensor<1> mean;                   // [E]     of its probabilities
};
static Routed route(ConstMatrix x, const BlockWeights& weights) {
  const std::size_t N = x.rows, E = weights.experts.size();
  Routed routed{empty(N, E), {}, xt::zeros<float>({E}), xt::zeros<float>({E})};
  matmul_bt(x, weights.router, routed.p);
  for (std::size_t t = 0; t < N; ++t) {
    const Row p = row(routed.p, t);
    const float most = *std::ranges::max_element(p);
    float sum = 0;
    for (float& score : p) sum += score = std::exp(score - most);
    for (float& score : p) score /= sum;
    routed.chosen.push_back(std::size_t(std::ranges::max_element(p) - p.begin()));
    routed.share(routed.chosen[t]) += 1 / float(N);
    for (std::size_t e = 0; e < E; ++e) routed.mean(e) += p[e] / float(N);
  }
  return routed;
}

static void experts_rows(const Block& block, ConstMatrix x, Matrix y, const Trace&) {
  const BlockSettings& s = block.settings();
  FeedForwardScratch scratch(1, s.F, s.activation);
  const Routed routed = route(x, block.weights());
  for (std::size_t t = 0; t < x.rows; ++t) {
    const std::size_t e = routed.chosen[t];
    feed_forward_rows(x.rows_from(t, 1), block.weights().experts[e], s.activation, scratch,
                      y.rows_from(t, 1));
    for (float& number : y.row(t)) number *= routed.p(t, e);
  }
}

/// The gradients of y = p·network(x) of one token, whose numbers are rows of one.
static void expert_backward(ConstMatrix x, ConstMatrix dy, const FeedForwardWeights& w,
                            Activation activation, float p, float& dp, Matrix dx,
                            FeedForwardWeights& gradients) {
  const std::size_t F = w.w_up.rows(), C = x.cols;
  Tensor<2> gate = empty(1, F), up = gate, hidden = gate, dgate = gate, dup = gate, y = empty(1, C);
  matmul_bt(x, w.w_gate, gate), matmul_bt(x, w.w_up, up);
  gated_rows(activation, gate, up, hidden);
  matmul_bt(ConstMatrix(hidden), w.w_down, y);
  for (std::size_t c = 0; c < C; ++c) dp += dy.row(0)[c] * y(0, c), y(0, c) = p * dy.row(0)[c];
  add_weight_gradient(y, hidden, gradients.w_down.floats());
  matmul(ConstMatrix(y), w.w_down.floats(), dup);
  gated_backward_rows(activation, gate, up, dup, dgate);
  add_weight_gradient(dgate, x, gradients.w_gate.floats());
  add_weight_gradient(dup, x, gradients.w_up.floats());
  matmul(ConstMatrix(dgate), w.w_gate.floats(), dx);
  add_input_gradient(dup, w.w_up.floats(), dx);
}

/// Adds the gradients of the output and of the loss balance·E·Σ share·mean, which it returns.
static double experts_backward(const NetworkCall& call, double balance) {
  const BlockWeights& weights = call.block.weights();
  const Routed routed = route(call.x, weights);
  const std::size_t N = call.x.rows, E = weights.experts.size();
  Tensor<2> dscores = empty(N, E);
  double loss = 0;
  for (std::size_t e = 0; e < E; ++e)
    loss += balance * double(E) * double(routed.share(e) * routed.mean(e));
  for (std::size_t t = 0; t < N; ++t) {
    const std::size_t chosen = routed.chosen[t];
    const Row dp = row(dscores, t);
    for (std::size_t e = 0; e < E; ++e)
      dp[e] = float(balance * double(E) * double(routed.share(e)) / double(N));
    expert_backward(call.x.rows_from(t, 1), call.dy.rows_from(t, 1), weights.experts[chosen],
                    call.block.settings().activation, routed.p(t, chosen), dp[chosen],
                    call.dx.rows_from(t, 1), call.gradients.experts[chosen]);
    float inner = 0;
    for (std::size_t e = 0; e < E; ++e) inner += routed.p(t, e) * dp[e];
    for (std::size_t e = 0; e < E; ++e) dp[e] = routed.p(t, e) * (dp[e] - inner);
  }
  add_weight_gradient(dscores, call.x, call.gradients.router.floats());
  add_input_gradient(dscores, weights.router.floats(), call.dx);
  return loss;
}

static TrainingFunctions functions(double balance) {
  TrainingFunctions functions;
  functions.network = {
      experts_rows, [balance](const NetworkCall& call) { return experts_backward(call, balance); }};
  return functions;
}
static Tensor<2> logits_of(const Model& model, const Ids& ids) {
  StateOptions options;
  options.network = [](std::span<const BlockSettings>, std::size_t) { return experts_rows; };
  ModelState state(model.config(), ids.size(), options);
  Tensor<2> logits = empty(ids.size(), model.config().V);
  forward_all(model, state, ids, logits);
  return logits;
}
static Config mixture() {
  Config config{.block = llama_style(32, 4, 2, 64), .L = 2, .V = 40, .T_max = 24};
  config.block.experts = 3, config.block.chosen = 1;
  return config;
}

TEST_CASE("experts: gradients are right along themselves, and so are those of the balancing loss") {
  const Config config = mixture();
  Random random(3);
  const ModelWeights weights = draw_model(config, random);
  Batch batch = make_batch(2, 9);
  for (std::size_t t = 0; t < 18; ++t)
    batch.ids[t] = int(t * 7 % 40), batch.targets[t] = int(t * 5 % 40);
  for (const double balance : {0.0, 2.0}) {
    CAPTURE(balance);
    Gradients passes(config, 2, 9, functions(balance));
    ModelWeights gradients = zeros_of(config), unused = zeros_of(config);
    passes.add(Model(config, weights), batch, 1.0f / 18, gradients);
    CHECK((passes.extra_loss() > 0) == (balance > 0));
    // So little that no token changes its expert.
    const double slope = slope_along(gradients, config, weights, 5e-4, [&](const Model& moved) {
      const double loss = passes.add(moved, batch, 1.0f / 18, unused);
      return loss / 18 + passes.extra_loss();
    });
    CHECK(std::abs(slope - 1) < 5e-3);
  }
}

TEST_CASE("experts: read from a file, trained, saved and read again") {
  const Config config = mixture();
  Random random(5);
  const std::vector<std::uint8_t> bytes = gguf_file(config, draw_model(config, random));
  const GgufFile file("x", bytes);
  CHECK(read_config(file).block.experts == 3);
  std::vector<int> text;
  for (int t = 0; t < 400; ++t) text.push_back(t * t % 37);
  Trainer trainer(read_model(file), {.B = 4, .T = 16, .schedule = {.peak = 1e-2f, .warmup = 5}},
                  text, {.functions = functions(0.01)});
  const double before = trainer.loss_of(text);
  for (int step = 0; step < 30; ++step) trainer.step();
  CHECK(trainer.loss_of(text) < before / 2);

  const Ids ids = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5};
  const std::vector<std::uint8_t> saved = gguf_file(config, trainer.model().weights());
  const Model again = read_model(GgufFile("y", saved));
  CHECK(all_close(logits_of(again, ids), logits_of(trainer.model(), ids), 0));
}

}  // namespace t2t::experts_test
