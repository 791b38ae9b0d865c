// What must be true of the experts: the formula against the row kernel, and their gradients.
#include "14_mixture_of_experts/experts.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "09_language_model/forward.hpp"
#include "12_quantization/packed/packed_weight.hpp"
#include "13_training/along_gradient.hpp"
#include "13_training/backward/model_backward.hpp"
#include "13_training/differences.hpp"
#include "13_training/trainer/trainer.hpp"
#include "14_mixture_of_experts/experts_backward.hpp"
#include "14_mixture_of_experts/mixture_counts.hpp"
#include "14_mixture_of_experts/mixture_network.hpp"
#include "files/npy.hpp"
#include "linalg.hpp"
#include "support/all_close.hpp"
#include "support/hashed_numbers.hpp"
#include "support/ids.hpp"
#include "support/refuses.hpp"

using namespace t2t;
using std::size_t;

struct Made {
  Weight router;
  std::vector<FeedForwardWeights> experts;
  Activation activation = Activation::swiglu;
  RouterSettings settings{2};
  FeedForwardWeights shared = {};
  Weight shared_gate = {};

  Mixture view() const {
    return {router,
            experts,
            activation,
            settings,
            {},
            {shared.w_up.size() > 0 ? &shared : nullptr,
             shared_gate.size() > 0 ? &shared_gate : nullptr}};
  }
};
static FeedForwardWeights network(std::uint32_t seed, size_t C, size_t F) {
  FeedForwardWeights weights;
  weights.w_gate = numbers(seed + 2, 1, 0, F, C);
  weights.w_up = numbers(seed + 3, 1, 0, F, C);
  weights.w_down = numbers(seed + 4, 1, 0, C, F);
  return weights;
}
static Made made(size_t E, size_t k, size_t C = 12, size_t F = 17) {
  Made some;
  some.router = numbers(1, 1, 0, E, C);
  for (size_t e = 0; e < E; ++e) some.experts.push_back(network(std::uint32_t(10 * e), C, F));
  some.settings.k = k;
  return some;
}
static Tensor<2> by_rows(const Tensor<2>& x, const Made& some) {
  const size_t C = x.shape(1), F = some.experts.at(0).w_up.rows();
  ExpertsScratch scratch(x.shape(0) + 1, C, F, some.experts.size(), some.settings.k,
                         some.activation);
  Tensor<2> y = empty(x.shape(0), C);
  experts_rows(x, some.view(), scratch, y);
  return y;
}
/// A network's result is a sum of 17 products of sums of 12; numbers stay below 16.
static const double bound = rounding(12 * 17, 16);

TEST_CASE("one expert is chapter 07's network, bit by bit") {
  const Made one = made(1, 1);
  const Tensor<2> x = numbers(8, 2, 0, 7, 12);
  FeedForwardScratch scratch(7, 17, Activation::swiglu);
  Tensor<2> want = empty(7, 12);
  feed_forward_rows(x, one.experts[0], Activation::swiglu, scratch, want);
  CHECK(all_close(by_rows(x, one), want, 0));
  CHECK(all_close(mixture_of_experts(x, one.view()), want, bound));
}

TEST_CASE("the row kernel is the formula") {
  for (const size_t E : {2, 8, 64, 128})
    for (const size_t k : {1, 2, 8})
      for (const size_t T : {1, 7, 512}) {
        if (k > E) continue;
        CAPTURE(E);
        CAPTURE(k);
        CAPTURE(T);
        const Made some = made(E, k);
        const Tensor<2> x = numbers(9, 2, 0, T, 12);
        CHECK(all_close(by_rows(x, some), mixture_of_experts(x, some.view()), bound));
      }
}

TEST_CASE("a mixture is the sum of its experts, each times its weight") {
  const Made some = made(5, 2);
  const Tensor<2> x = numbers(9, 2, 0, 3, 12);
  const Routed routed = route(x, some.router.floats(), some.settings);
  Tensor<2> want = zeros(3, 12);
  for (size_t t = 0; t < 3; ++t)
    for (size_t i = 0; i < 2; ++i) {
      const Tensor<2> one = feed_forward(rows_of(x, t, 1), some.experts[routed.experts[2 * t + i]],
                                         Activation::swiglu);
      for (size_t c = 0; c < 12; ++c) want(t, c) += routed.weights(t, i) * one(0, c);
    }
  CHECK(all_close(mixture_of_experts(x, some.view()), want, bound));
  CHECK(all_close(by_rows(x, some), want, bound));
}

TEST_CASE("a network beside the experts: every token goes through it, with a gate or without") {
  for (const bool has_gate : {false, true}) {
    CAPTURE(has_gate);
    Made some = made(5, 2);
    const Tensor<2> x = numbers(9, 2, 0, 7, 12), alone = mixture_of_experts(x, some.view());
    some.shared = network(1000, 12, 14);
    if (has_gate) some.shared_gate = numbers(77, 1, 0, 1, 12);
    Tensor<2> want = feed_forward(x, some.shared, Activation::swiglu);
    if (has_gate) {
      const Tensor<2> score = matmul_bt(x, some.shared_gate.floats());  // [T, 1]
      want = want / (1 + xt::exp(-score));
    }
    want += alone;
    CHECK(all_close(mixture_of_experts(x, some.view()), want, 2 * bound));
    CHECK(all_close(by_rows(x, some), want, 2 * bound));
  }
  Made some = made(5, 2);
  some.shared = network(1000, 12, 14), some.shared_gate = zeros(1, 11);
  const Tensor<2> x = numbers(9, 2, 0, 7, 12);
  REFUSES(mixture_of_experts(x, some.view()), "shared_gate: wanted shape [1, 12], got [1, 11]");
  REFUSES(by_rows(x, some), "shared_gate: wanted shape [1, 12], got [1, 11]");
}

TEST_CASE("the choice and the weights of a token are the same bits whatever tokens are beside it") {
  const Made some = made(64, 8, 256, 8);
  const Tensor<2> x = numbers(9, 2, 0, 30, 256);
  const auto routed = [&](const Tensor<2>& read) {
    ExpertsScratch scratch(read.shape(0), 256, 8, 64, 8, Activation::swiglu);
    Tensor<2> y = empty(read.shape(0), 256);
    experts_rows(read, some.view(), scratch, y);
    return std::pair(scratch.experts, scratch.weights);
  };
  const auto [experts, weights] = routed(x);
  for (size_t t = 0; t < 30; ++t) {
    const auto [alone, weights_alone] = routed(rows_of(x, t, 1));
    CHECK(std::ranges::equal(alone, std::span(experts).subspan(8 * t, 8)));
    CHECK(all_close(weights_alone, rows_of(weights, t, 1), 0));
  }
}

TEST_CASE("with packed weights: the formula's numbers, and the same bits beside any tokens") {
  for (const TensorType type : {TensorType::q8_0, TensorType::q4_k}) {
    CAPTURE(int(type));
    Made floats = made(6, 2, 256, 256);
    for (FeedForwardWeights& expert : floats.experts)
      for (Weight* w : {&expert.w_gate, &expert.w_up, &expert.w_down})
        *w = Tensor<2>(w->floats() / 16);
    Made packed = floats;
    for (size_t e = 0; e < 6; ++e)
      for (auto w :
           {&FeedForwardWeights::w_gate, &FeedForwardWeights::w_up, &FeedForwardWeights::w_down}) {
        packed.experts[e].*w = packed_floats(type, (floats.experts[e].*w).floats());
        Tensor<2> unpacked = empty(256, 256);
        for (size_t r = 0; r < 256; ++r) (packed.experts[e].*w).row(r, row(unpacked, r));
        floats.experts[e].*w = unpacked;
      }
    const Tensor<2> x = numbers(9, 1, 0, 512, 256);
    const Tensor<2> got = by_rows(x, packed);
    // Only x and hidden are rounded, to 127 steps of the largest of 32 numbers: half a step each,
    // of errors that add up like the steps of a random walk.
    const Tensor<2> want = mixture_of_experts(rows_of(x, 0, 32), floats.view());
    const Tensor<2> apart = rows_of(got, 0, 32) - want;
    CHECK(xt::sum(apart * apart)() < xt::sum(want * want)() * 0.02 * 0.02);
    for (size_t t = 0; t < 512; t += 37)
      CHECK(all_close(by_rows(rows_of(x, t, 1), packed), rows_of(got, t, 1), 0));
    CHECK(all_close(by_rows(rows_of(x, 5, 3), packed), rows_of(got, 5, 3), 0));
  }
}

TEST_CASE("all tokens may want one expert, and an expert may have none") {
  Made some = made(3, 1);
  some.router = zeros(3, 12);  // equal scores: expert 0
  const Tensor<2> x = numbers(9, 2, 0, 6, 12);
  CHECK(all_close(by_rows(x, some), feed_forward(x, some.experts[0], Activation::swiglu), bound));
}

TEST_CASE("y may be x itself, and a plain activation with biases is an expert too") {
  Made some = made(4, 2);
  some.activation = Activation::gelu;
  for (FeedForwardWeights& expert : some.experts) {
    expert.w_gate = Weight();
    expert.b_up = numbers(5, 1, 0, 17), expert.b_down = numbers(6, 1, 0, 12);
  }
  Tensor<2> x = numbers(9, 2, 0, 5, 12);
  const Tensor<2> want = mixture_of_experts(x, some.view());
  ExpertsScratch scratch(9, 12, 17, 4, 2, Activation::gelu);
  experts_rows(x, some.view(), scratch, x);
  CHECK(all_close(x, want, bound));
}

TEST_CASE("choices are sorted by expert, and equal ones keep their order") {
  const std::vector<size_t> experts = {2, 0, 1, 2, 2, 0};  // of three tokens
  Assignment assignment;
  assign(experts, 4, assignment);
  CHECK(assignment.begin == std::vector<size_t>{0, 2, 3, 6, 6});
  CHECK(assignment.choices == std::vector<size_t>{1, 5, 2, 0, 3, 4});
  CHECK(assignment.rows == std::vector<size_t>{3, 0, 2, 4, 5, 1});
  CHECK(assignment.count(2) == 3);
  CHECK(assignment.count(3) == 0);
}

TEST_CASE("the experts refuse what does not fit, before anything is written") {
  const Tensor<2> x = numbers(9, 2, 0, 4, 12);
  const auto refused = [&](const Made& some, const char* message, Tensor<2> read = {}) {
    if (read.size() == 0) read = x;
    ExpertsScratch scratch(4, 12, 17, 3, 2, Activation::swiglu);
    Tensor<2> y = zeros(4, 12);
    REFUSES(experts_rows(read, some.view(), scratch, y), message);
    CHECK(all_close(y, zeros(4, 12), 0));
  };
  Made some = made(3, 2);
  some.experts.clear();
  refused(some, "experts: wanted at least 1, got 0");
  REFUSES(mixture_of_experts(x, some.view()), "experts: wanted at least 1, got 0");
  some = made(3, 2);
  some.router = zeros(4, 12);
  refused(some, "router: wanted shape [3, 12], got [4, 12]");
  some = made(3, 4);
  refused(some, "k, the experts of a token: wanted 1 to E = 3, got 4");
  some = made(3, 1);
  refused(some,
          "scratch: wanted T_max ≥ 4, C = 12, E = 3, k = 1, got T_max = 4, C = 12, E = 3, k = 2");
  Tensor<2> broken = x;
  broken(1, 3) = broken(3, 0) = std::numeric_limits<float>::infinity();
  refused(made(3, 2), "scores of token 1: wanted finite numbers, got others", broken);
  ExpertsScratch scratch(4, 12, 17, 3, 2, Activation::swiglu);
  Tensor<2> narrow = empty(4, 11);
  REFUSES(experts_rows(x, made(3, 2).view(), scratch, narrow),
          "y: wanted shape [4, 12], got [4, 11]");
  REFUSES(ExpertsScratch(0, 12, 17, 3, 2, Activation::swiglu), "T_max: wanted at least 1, got 0");
}

/// Σ over c of dy·network(x[t]) in float64; the matrices are gate, up and down.
static double along(const Doubles& x, size_t t, std::span<const Doubles> matrices,
                    const Tensor<2>& dy) {
  const Doubles &gate = matrices[0], &up = matrices[1], &down = matrices[2];
  double sum = 0;
  for (size_t f = 0; f < gate.rows; ++f) {
    double g = 0, u = 0;
    for (size_t c = 0; c < x.cols; ++c) g += x(t, c) * gate(f, c), u += x(t, c) * up(f, c);
    const double hidden = g / (1 + std::exp(-g)) * u;
    for (size_t c = 0; c < x.cols; ++c) sum += double(dy(t, c)) * hidden * down(c, f);
  }
  return sum;
}

/// Σ dy·y of a mixture in float64 with a fixed choice. The matrices are three for each expert.
static double loss_of(const Doubles& x, const Doubles& router, std::span<const Doubles> matrices,
                      const Routed& routed, const RouterSettings& settings, const Tensor<2>& dy) {
  double loss = 0;
  const size_t C = x.cols, k = settings.k;
  for (size_t t = 0; t < x.rows; ++t) {
    std::vector<double> p(router.rows);
    double sum = 0, of_chosen = 0;
    for (size_t e = 0; e < router.rows; ++e) {
      for (size_t c = 0; c < C; ++c) p[e] += x(t, c) * router(e, c);
      p[e] = std::exp(p[e]);
      sum += p[e];
    }
    for (size_t i = 0; i < k; ++i) of_chosen += p[routed.experts[t * k + i]];
    for (size_t i = 0; i < k; ++i) {
      const size_t e = routed.experts[t * k + i];
      const double weight = p[e] / (settings.normalised ? of_chosen : sum);
      loss += weight * along(x, t, matrices.subspan(3 * e, 3), dy);
    }
  }
  return loss;
}

TEST_CASE("each gradient of a mixture is that of small changes in float64, choice unchanged") {
  for (const bool normalised : {true, false}) {
    Made some = made(4, 2, 5, 3);
    some.settings.normalised = normalised;
    const Tensor<2> x = numbers(8, 1, 0, 6, 5), dy = numbers(9, 1, 0, 6, 5);
    const Routed routed = choices_of(x, some.view(), {});
    Weight router{zeros(4, 5)};
    std::vector<FeedForwardWeights> gradients(4);
    for (FeedForwardWeights& g : gradients)
      g.w_gate = zeros(3, 5), g.w_up = zeros(3, 5), g.w_down = zeros(5, 3);
    Tensor<2> dx = empty(6, 5);
    FeedForwardWeights no_shared;
    Weight no_gate;
    CHECK(experts_backward(x, some.view(), routed, {}, dy, dx,
                           {router, gradients, no_shared, no_gate}) == 0);

    Doubles x_d(x), router_d(some.router.floats());
    std::vector<Doubles> matrices;
    for (const FeedForwardWeights& w : some.experts)
      for (const Weight* matrix : {&w.w_gate, &w.w_up, &w.w_down})
        matrices.emplace_back(matrix->floats());
    const auto loss = [&] { return loss_of(x_d, router_d, matrices, routed, some.settings, dy); };
    const double near = rounding(6 * 3 * 5, 4);
    CHECK(all_close(dx, by_differences(x_d, loss), near));
    CHECK(all_close(router.floats(), by_differences(router_d, loss), near));
    for (size_t e = 0; e < 4; ++e) {
      CAPTURE(e);
      CHECK(all_close(gradients[e].w_gate.floats(), by_differences(matrices[3 * e], loss), near));
      CHECK(all_close(gradients[e].w_up.floats(), by_differences(matrices[3 * e + 1], loss), near));
      CHECK(
          all_close(gradients[e].w_down.floats(), by_differences(matrices[3 * e + 2], loss), near));
    }
  }
}

/// One matrix of each expert.
static Tensor<3> of_experts(const std::string& name) {
  return load_npy<3>(T2T_FIXTURES "/" + name + ".npy");
}

TEST_CASE("losses and all gradients equal those of PyTorch") {
  struct Case {
    std::string name;
    RouterSettings settings;
  };
  for (const auto& [name, settings] :
       {Case{"normalised", {.k = 2}}, Case{"shares", {.k = 2, .normalised = false}},
        Case{"sigmoid", {.k = 3, .scoring = Scoring::sigmoid}}}) {
    CAPTURE(name);
    const auto matrix = [&](const char* part) {
      return load_npy<2>(T2T_FIXTURES "/" + name + "_" + part + ".npy");
    };
    const Tensor<2> x = matrix("x"), dy = matrix("dy");  // [7, 8]
    const Tensor<3> gate = of_experts(name + "_w_gate"), up = of_experts(name + "_w_up"),
                    down = of_experts(name + "_w_down");
    Made some;
    some.router = matrix("router"), some.settings = settings, some.experts.resize(5);
    std::vector<FeedForwardWeights> gradients(5);
    for (size_t e = 0; e < 5; ++e) {
      FeedForwardWeights& w = some.experts[e];
      w.w_gate = copy_of(t2t::matrix(gate, e)), w.w_up = copy_of(t2t::matrix(up, e));
      w.w_down = copy_of(t2t::matrix(down, e));
      gradients[e].w_gate = zeros(6, 8), gradients[e].w_up = zeros(6, 8);
      gradients[e].w_down = zeros(8, 6);
    }
    // Sums of 8·6 products of numbers below 8.
    const double near = rounding(8 * 6, 8);
    CHECK(all_close(mixture_of_experts(x, some.view()), matrix("y"), near));
    const Balance balance{.switch_loss = 0.3f, .z_loss = 0.2f};
    const Routed routed = choices_of(x, some.view(), balance);
    Weight router{zeros(5, 8)};
    FeedForwardWeights no_shared;
    Weight no_gate;
    Tensor<2> dx = empty(7, 8);
    const double loss = experts_backward(x, some.view(), routed, balance, dy, dx,
                                         {router, gradients, no_shared, no_gate});
    const Tensor<1> losses = load_npy<1>(T2T_FIXTURES "/" + name + "_losses.npy");
    CHECK(loss == doctest::Approx(0.3 * double(losses(1)) + 0.2 * double(losses(2))));
    CHECK(all_close(dx, matrix("dx"), near));
    CHECK(all_close(router.floats(), matrix("drouter"), near));
    const Tensor<3> dgate = of_experts(name + "_dw_gate"), dup = of_experts(name + "_dw_up"),
                    ddown = of_experts(name + "_dw_down");
    for (size_t e = 0; e < 5; ++e) {
      CAPTURE(e);
      CHECK(all_close(gradients[e].w_gate.floats(), copy_of(t2t::matrix(dgate, e)), near));
      CHECK(all_close(gradients[e].w_up.floats(), copy_of(t2t::matrix(dup, e)), near));
      CHECK(all_close(gradients[e].w_down.floats(), copy_of(t2t::matrix(ddown, e)), near));
    }
  }
}

TEST_CASE("the shared network and its gate get their gradients") {
  for (const bool has_gate : {false, true}) {
    CAPTURE(has_gate);
    Made some = made(4, 2, 5, 3);
    some.shared = network(1000, 5, 4);
    if (has_gate) some.shared_gate = numbers(77, 1, 0, 1, 5);
    const Tensor<2> x = numbers(8, 1, 0, 6, 5), dy = numbers(9, 1, 0, 6, 5);
    const Routed routed = choices_of(x, some.view(), {});
    Weight router{zeros(4, 5)}, gate{zeros(1, 5)};
    std::vector<FeedForwardWeights> gradients(4);
    for (FeedForwardWeights& g : gradients)
      g.w_gate = zeros(3, 5), g.w_up = zeros(3, 5), g.w_down = zeros(5, 3);
    FeedForwardWeights shared;
    shared.w_gate = zeros(4, 5), shared.w_up = zeros(4, 5), shared.w_down = zeros(5, 4);
    Tensor<2> dx = empty(6, 5);
    experts_backward(x, some.view(), routed, {}, dy, dx, {router, gradients, shared, gate});

    Doubles x_d(x), router_d(some.router.floats());
    Doubles gate_d(has_gate ? some.shared_gate.floats() : zeros(1, 5));
    std::vector<Doubles> matrices, of_shared;
    for (const FeedForwardWeights& w : some.experts)
      for (const Weight* matrix : {&w.w_gate, &w.w_up, &w.w_down})
        matrices.emplace_back(matrix->floats());
    for (const Weight* w : {&some.shared.w_gate, &some.shared.w_up, &some.shared.w_down})
      of_shared.emplace_back(w->floats());
    const auto loss = [&] {
      double sum = loss_of(x_d, router_d, matrices, routed, some.settings, dy);
      for (size_t t = 0; t < 6; ++t) {
        double score = 0;
        for (size_t c = 0; c < 5; ++c) score += x_d(t, c) * gate_d(0, c);
        sum += (has_gate ? 1 / (1 + std::exp(-score)) : 1) * along(x_d, t, of_shared, dy);
      }
      return sum;
    };
    const double near = rounding(6 * 4 * 5, 4);
    CHECK(all_close(dx, by_differences(x_d, loss), near));
    CHECK(all_close(shared.w_gate.floats(), by_differences(of_shared[0], loss), near));
    CHECK(all_close(shared.w_up.floats(), by_differences(of_shared[1], loss), near));
    CHECK(all_close(shared.w_down.floats(), by_differences(of_shared[2], loss), near));
    if (has_gate) CHECK(all_close(gate.floats(), by_differences(gate_d, loss), near));
  }
}

TEST_CASE("a choice that was dropped gets no gradient and gives none") {
  Made some = made(3, 1, 5, 3);
  some.settings.normalised = false;
  Tensor<2> wants_expert_0 = zeros(3, 5);
  for (size_t c = 0; c < 5; ++c) wants_expert_0(0, c) = 0.25f;
  some.router = wants_expert_0;
  const Tensor<2> x = numbers(8, 1, 1, 6, 5), dy = numbers(9, 1, 0, 6, 5);  // x is above 0
  const Balance balance{.slack = 1};                                        // two choices each
  const Routed routed = choices_of(x, some.view(), balance);
  Weight router{zeros(3, 5)};
  std::vector<FeedForwardWeights> gradients(3);
  for (FeedForwardWeights& g : gradients)
    g.w_gate = zeros(3, 5), g.w_up = zeros(3, 5), g.w_down = zeros(5, 3);
  Tensor<2> dx = empty(6, 5);
  FeedForwardWeights no_shared;
  Weight no_gate;
  const MixtureGradients all = {router, gradients, no_shared, no_gate};
  experts_backward(x, some.view(), routed, balance, dy, dx, all);
  CHECK(all_close(rows_of(dx, 2, 4), zeros(4, 5), 0));
  CHECK(!all_close(rows_of(dx, 0, 2), zeros(2, 5), 1e-3));
  REFUSES(experts_backward(x, some.view(), routed, balance, zeros(5, 5), dx, all),
          "dy: wanted shape [6, 5], got [5, 5]");
  some.activation = Activation::gelu;
  REFUSES(experts_backward(x, some.view(), routed, balance, dy, dx, all),
          "experts to train: wanted gated networks, got others");
}

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
    TrainingSlots slots;
    slots.network = experts.network();
    Gradients passes(config, 2, 9, slots);
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
  hooks.slots.network = experts.network();
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
