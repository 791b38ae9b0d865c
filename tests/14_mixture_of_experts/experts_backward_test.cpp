// What must be true of the experts' gradients: finite differences in float64, and PyTorch's
// numbers.
#include "14_mixture_of_experts/training/experts_backward.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "13_training/differences.hpp"
#include "14_mixture_of_experts/made.hpp"
#include "files/npy.hpp"
#include "linalg.hpp"
#include "support/all_close.hpp"
#include "support/refuses.hpp"

namespace t2t::experts_backward_test {

using std::size_t;

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
      const double weight = p[e] / (settings.normalized ? of_chosen : sum);
      loss += weight * along(x, t, matrices.subspan(3 * e, 3), dy);
    }
  }
  return loss;
}

static Tensor<2> zeros_like(const Weight& w) { return zeros(w.rows(), w.cols()); }

/// Gradients of a mixture's weights, all 0.
struct ZeroGradients {
  Weight router, shared_gate;
  std::vector<FeedForwardWeights> experts;
  FeedForwardWeights shared;

  explicit ZeroGradients(const Made& of)
      : router(zeros_like(of.router)),
        shared_gate(zeros_like(of.shared_gate)),
        shared(of_network(of.shared)) {
    for (const FeedForwardWeights& expert : of.experts) experts.push_back(of_network(expert));
  }
  static FeedForwardWeights of_network(const FeedForwardWeights& w) {
    FeedForwardWeights gradients;
    gradients.w_gate = zeros_like(w.w_gate), gradients.w_up = zeros_like(w.w_up);
    gradients.w_down = zeros_like(w.w_down);
    return gradients;
  }
  MixtureGradients view() { return {router, experts, shared, shared_gate}; }
};

TEST_CASE("each gradient of a mixture is that of finite differences in float64, choice unchanged") {
  for (const bool normalized : {true, false}) {
    Made some = made(4, 2, 5, 3);
    some.settings.normalized = normalized;
    const Tensor<2> x = numbers(8, 1, 0, 6, 5), dy = numbers(9, 1, 0, 6, 5);
    const Routed routed = choices_of(x, some.view(), {});
    ZeroGradients gradients(some);
    Tensor<2> dx = empty(6, 5);
    CHECK(experts_backward(x, some.view(), routed, {}, dy, dx, gradients.view()) == 0);

    Doubles x_d(x), router_d(some.router.floats());
    std::vector<Doubles> matrices;
    for (const FeedForwardWeights& w : some.experts)
      for (const Weight* matrix : {&w.w_gate, &w.w_up, &w.w_down})
        matrices.emplace_back(matrix->floats());
    const auto loss = [&] { return loss_of(x_d, router_d, matrices, routed, some.settings, dy); };
    const double near = rounding(6 * 3 * 5, 4);
    CHECK(all_close(dx, by_differences(x_d, loss), near));
    CHECK(all_close(gradients.router.floats(), by_differences(router_d, loss), near));
    for (size_t e = 0; e < 4; ++e) {
      CAPTURE(e);
      CHECK(all_close(gradients.experts[e].w_gate.floats(), by_differences(matrices[3 * e], loss),
                      near));
      CHECK(all_close(gradients.experts[e].w_up.floats(), by_differences(matrices[3 * e + 1], loss),
                      near));
      CHECK(all_close(gradients.experts[e].w_down.floats(),
                      by_differences(matrices[3 * e + 2], loss), near));
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
  for (const Case& one :
       {Case{"normalized", {.k = 2}}, Case{"shares", {.k = 2, .normalized = false}},
        Case{"sigmoid", {.k = 3, .scoring = Scoring::sigmoid}}}) {
    const std::string& name = one.name;
    CAPTURE(name);
    const auto matrix = [&](const char* part) {
      return load_npy<2>(T2T_FIXTURES "/" + name + "_" + part + ".npy");
    };
    const Tensor<2> x = matrix("x"), dy = matrix("dy");  // [7, 8]
    const Tensor<3> gate = of_experts(name + "_w_gate"), up = of_experts(name + "_w_up"),
                    down = of_experts(name + "_w_down");
    Made some;
    some.router = matrix("router"), some.settings = one.settings, some.experts.resize(5);
    for (size_t e = 0; e < 5; ++e) {
      FeedForwardWeights& w = some.experts[e];
      w.w_gate = copy_of(t2t::matrix(gate, e)), w.w_up = copy_of(t2t::matrix(up, e));
      w.w_down = copy_of(t2t::matrix(down, e));
    }
    // Sums of 8·6 products of numbers below 8.
    const double near = rounding(8 * 6, 8);
    CHECK(all_close(mixture_of_experts(x, some.view()), matrix("y"), near));
    const Balance balance{.switch_loss = 0.3f, .z_loss = 0.2f};
    const Routed routed = choices_of(x, some.view(), balance);
    ZeroGradients gradients(some);
    Tensor<2> dx = empty(7, 8);
    const double loss = experts_backward(x, some.view(), routed, balance, dy, dx, gradients.view());
    const Tensor<1> losses = load_npy<1>(T2T_FIXTURES "/" + name + "_losses.npy");
    CHECK(loss == doctest::Approx(0.3 * double(losses(1)) + 0.2 * double(losses(2))));
    CHECK(all_close(dx, matrix("dx"), near));
    CHECK(all_close(gradients.router.floats(), matrix("drouter"), near));
    const Tensor<3> dgate = of_experts(name + "_dw_gate"), dup = of_experts(name + "_dw_up"),
                    ddown = of_experts(name + "_dw_down");
    for (size_t e = 0; e < 5; ++e) {
      CAPTURE(e);
      CHECK(all_close(gradients.experts[e].w_gate.floats(), copy_of(t2t::matrix(dgate, e)), near));
      CHECK(all_close(gradients.experts[e].w_up.floats(), copy_of(t2t::matrix(dup, e)), near));
      CHECK(all_close(gradients.experts[e].w_down.floats(), copy_of(t2t::matrix(ddown, e)), near));
    }
  }
}

TEST_CASE("the z-loss counts and has its gradients without Switch's loss, too") {
  const Made some = made(4, 2, 5, 3);
  const Tensor<2> x = numbers(8, 1, 0, 6, 5);
  const Balance balance{.z_loss = 0.5f};
  const Routed routed = choices_of(x, some.view(), balance);
  ZeroGradients gradients(some);
  Tensor<2> dx = empty(6, 5), dscores = zeros(6, 4), drouter = zeros(4, 5);
  // With a dy of 0 the z-loss is all that gives the scores a gradient.
  const double loss =
      experts_backward(x, some.view(), routed, balance, zeros(6, 5), dx, gradients.view());
  CHECK(loss == doctest::Approx(z_loss(routed, 0.5f, dscores)));
  add_matmul_at(dscores, x, drouter);
  // Sums of 6 or 4 products of numbers below 1/2.
  CHECK(all_close(gradients.router.floats(), drouter, rounding(6, 1)));
  CHECK(all_close(dx, matmul(dscores, some.router.floats()), rounding(4, 1)));
}

TEST_CASE("the shared network and its gate get their gradients") {
  for (const bool has_gate : {false, true}) {
    CAPTURE(has_gate);
    Made some = made(4, 2, 5, 3);
    some.shared = network(1000, 5, 4);
    if (has_gate) some.shared_gate = numbers(77, 1, 0, 1, 5);
    const Tensor<2> x = numbers(8, 1, 0, 6, 5), dy = numbers(9, 1, 0, 6, 5);
    const Routed routed = choices_of(x, some.view(), {});
    ZeroGradients gradients(some);
    Tensor<2> dx = empty(6, 5);
    experts_backward(x, some.view(), routed, {}, dy, dx, gradients.view());

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
    CHECK(all_close(gradients.shared.w_gate.floats(), by_differences(of_shared[0], loss), near));
    CHECK(all_close(gradients.shared.w_up.floats(), by_differences(of_shared[1], loss), near));
    CHECK(all_close(gradients.shared.w_down.floats(), by_differences(of_shared[2], loss), near));
    if (has_gate)
      CHECK(all_close(gradients.shared_gate.floats(), by_differences(gate_d, loss), near));
  }
}

TEST_CASE("a choice that was dropped gets no gradient and gives none") {
  Made some = made(3, 1, 5, 3);
  some.settings.normalized = false;
  Tensor<2> wants_expert_0 = zeros(3, 5);
  for (size_t c = 0; c < 5; ++c) wants_expert_0(0, c) = 0.25f;
  some.router = wants_expert_0;
  const Tensor<2> x = numbers(8, 1, 1, 6, 5), dy = numbers(9, 1, 0, 6, 5);  // x is above 0
  const Balance balance{.slack = 1};                                        // two choices each
  const Routed routed = choices_of(x, some.view(), balance);
  ZeroGradients gradients(some);
  Tensor<2> dx = empty(6, 5);
  const MixtureGradients all = gradients.view();
  experts_backward(x, some.view(), routed, balance, dy, dx, all);
  CHECK(all_close(rows_of(dx, 2, 4), zeros(4, 5), 0));
  CHECK(!all_close(rows_of(dx, 0, 2), zeros(2, 5), 1e-3));
  REFUSES(experts_backward(x, some.view(), routed, balance, zeros(5, 5), dx, all),
          "dy: wanted shape [6, 5], got [5, 5]");
  REFUSES(experts_backward(x, some.view(), routed, balance, dy, dx,
                           {gradients.router, std::span(gradients.experts).first(2),
                            gradients.shared, gradients.shared_gate}),
          "experts of the gradients: wanted E = 3, got 2");
  some.activation = Activation::gelu;
  REFUSES(experts_backward(x, some.view(), routed, balance, dy, dx, all),
          "experts to train: wanted gated networks, got others");
}

}  // namespace t2t::experts_backward_test
