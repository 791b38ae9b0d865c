// What must be true of the backward passes of products, norms, the loss and the embedding. Those of
// activations and of attention have files of their own.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "01_embedding/embedding.hpp"
#include "13_training/backward/activation_backward.hpp"
#include "13_training/backward/cross_entropy.hpp"
#include "13_training/backward/embedding_backward.hpp"
#include "13_training/backward/linear_backward.hpp"
#include "13_training/backward/norm_backward.hpp"
#include "13_training/backward/norm_backward_rows.hpp"
#include "13_training/differences.hpp"
#include "linalg.hpp"
#include "rows.hpp"
#include "support/all_close.hpp"
#include "support/allocations.hpp"
#include "support/first_difference.hpp"
#include "support/hashed_numbers.hpp"
#include "support/refuses.hpp"

namespace t2t::backward_test {

using std::size_t;

static constexpr double u = 0x1p-24;  // one rounding of a number up to 1

/// Whether all numbers are NaN, or none; the first that isn't as wanted is told.
static Closeness all_are(ConstRow x, bool (*wanted)(float), const char* word) {
  const auto other = std::ranges::find_if_not(x, wanted);
  if (other == x.end()) return {true, ""};
  return {false, fmt::format("number {} of {} is {}, wanted {}", other - x.begin(), x.size(),
                             *other, word)};
}
static Closeness is_nan(ConstRow x) {
  return all_are(
      x, [](float number) { return std::isnan(number); }, "NaN");
}
static Closeness is_finite(ConstRow x) {
  return all_are(
      x, [](float number) { return std::isfinite(number); }, "a finite number");
}
/// All numbers of several results one after the other, to compare bit by bit.
static std::vector<float> joined(std::initializer_list<ConstRow> parts) {
  std::vector<float> all;
  for (const ConstRow part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}
static ConstRow all_of(const Tensor<2>& x) { return {x.data(), x.size()}; }

// Products and sums over tokens.

TEST_CASE("products: gradients are those of finite differences, at odd sizes") {
  const size_t T = 7, in = 9, out = 5;
  const Tensor<2> dy = numbers(4, 2, 0, T, out);
  Doubles x(numbers(1, 2, 0, T, in)), w(numbers(2, 2, 0, out, in)), b(numbers(3, 2, 0, out));
  const auto loss = [&] {
    Doubles y(T, out);
    for (size_t t = 0; t < T; ++t)
      for (size_t o = 0; o < out; ++o) {
        y(t, o) = b(0, o);
        for (size_t i = 0; i < in; ++i) y(t, o) += x(t, i) * w(o, i);
      }
    return dot(dy, y);
  };
  Tensor<2> dx = zeros(T, in), dw = zeros(out, in);
  Tensor<1> db = zeros(out);
  add_input_gradient(dy, numbers(2, 2, 0, out, in), dx);
  add_weight_gradient(dy, numbers(1, 2, 0, T, in), dw);
  add_bias_gradient(dy, db);
  // Up to 9 terms of size 1, whose partial sums stay below 4.
  CHECK(all_close(dx, by_differences(x, loss), rounding(out, 4)));
  CHECK(all_close(dw, by_differences(w, loss), rounding(T, 4)));
  CHECK(all_close(as_matrix(db), by_differences(b, loss), rounding(T, 4)));
}

TEST_CASE("products add to a part of a larger matrix, and to nothing beside it") {
  const Tensor<2> dy = numbers(1, 2, 0, 3, 4), w = numbers(2, 2, 0, 4, 5);
  const Tensor<2> x = numbers(3, 2, 0, 3, 5);
  Tensor<2> alone_x = zeros(3, 5), alone_w = zeros(4, 5);
  add_input_gradient(dy, w, alone_x);
  add_weight_gradient(dy, x, alone_w);
  Tensor<2> dx = zeros(5, 9), dw = dx, want_x = dx, want_w = dx;
  xt::view(want_x, xt::range(1, 4), xt::range(2, 7)) = alone_x;
  xt::view(want_w, xt::range(1, 5), xt::range(2, 7)) = alone_w;
  add_input_gradient(dy, w, Matrix(dx).rows_from(1, 3).cols_from(2, 5));
  add_weight_gradient(dy, x, Matrix(dw).rows_from(1, 4).cols_from(2, 5));
  CHECK(all_close(dx, want_x, 0));
  CHECK(all_close(dw, want_w, 0));
  // The same again: each gradient doubles, since what is there stays.
  add_input_gradient(dy, w, alone_x);
  add_weight_gradient(dy, x, alone_w);
  CHECK(all_close(alone_x, Tensor<2>(2 * rows_of(ConstMatrix(dx).cols_from(2, 5), 1, 3)), 8 * u));
  CHECK(all_close(alone_w, Tensor<2>(2 * rows_of(ConstMatrix(dw).cols_from(2, 5), 1, 4)), 8 * u));
}

TEST_CASE("every column has its sum, at widths around a stretch of 64") {
  for (const size_t C : {1, 5, 15, 17, 63, 64, 65, 127, 130}) {
    CAPTURE(C);
    const Tensor<2> ones = xt::ones<float>({size_t(3), C});
    Tensor<1> db = zeros(C);
    add_bias_gradient(ones, db);
    add_bias_gradient(ones, db);
    CHECK(all_close(db, Tensor<1>(6 * xt::ones<float>({C})), 0));
    Tensor<2> table = zeros(4, C), want = table;
    xt::view(want, 2) = 2, xt::view(want, 0) = 1;
    add_embedding_gradient(std::vector{2, 0, 2}, ones, table);
    CHECK(all_close(table, want, 0));
    // RMSNorm of ones is ones, so each token adds dy, here 1, to the gain's gradient.
    NormWeights gradients{zeros(C), {}};
    Tensor<2> dx = zeros(3, C);
    Tensor<1> scratch = empty(6);
    add_norm_backward(ones, {xt::ones<float>({C}), {}}, Norm::rms, 0, ones, dx, gradients,
                      row(scratch));
    CHECK(all_close(gradients.gain, Tensor<1>(3 * xt::ones<float>({C})), 16 * u));
  }
}

TEST_CASE("products refuse shapes that disagree, by the names of their arguments") {
  const Tensor<2> dy = zeros(3, 4), w = zeros(4, 5), x = zeros(3, 5), odd = zeros(3, 6);
  Tensor<2> dx = zeros(3, 5), dw = zeros(4, 5), other = zeros(2, 5);
  Tensor<1> db = zeros(3);
  REFUSES(add_input_gradient(dy, x, dx), "w: wanted shape [4, 5], got [3, 5]");
  REFUSES(add_input_gradient(dy, w, other), "dx: wanted shape [3, 5], got [2, 5]");
  REFUSES(add_weight_gradient(dy, w, dw), "x: wanted shape [3, 5], got [4, 5]");
  REFUSES(add_weight_gradient(dy, x, other), "dw: wanted shape [4, 5], got [2, 5]");
  REFUSES(add_weight_gradient(dy, odd, dw), "dw: wanted shape [4, 6], got [4, 5]");
  REFUSES(add_bias_gradient(dy, db), "db: wanted shape [4], got [3]");
  Tensor<1> none;  // a product without a bias
  CHECK_NOTHROW(add_bias_gradient(dy, none));
}

// Norms.

/// What the kernel adds to gradients of 0.
static NormGradients norm_by_rows(const Tensor<2>& x, const NormWeights& weights, Norm kind,
                                  float eps, const Tensor<2>& dy) {
  const size_t T = x.shape(0), C = x.shape(1);
  NormGradients got{zeros(T, C), {zeros(C), zeros(weights.bias.size())}};
  Tensor<1> scratch = empty(2 * T);
  add_norm_backward(x, weights, kind, eps, dy, got.x, got.weights, row(scratch));
  return got;
}
static NormWeights some_weights(Norm kind, size_t C) {
  return {numbers(2, 1, 1, C), kind == Norm::layer ? numbers(3, 1, 0, C) : Tensor<1>{}};
}

TEST_CASE("by hand: RMSNorm of (1, 7), and of two ones on top of eps") {
  // Mean square 25, r = 1/5, x̂ = (0.2, 1.4). With u = dy = (1, 0), mean(u·x̂) is 0.1, and dx is
  // (1 − 0.2·0.1, 0 − 1.4·0.1) / 5.
  const Tensor<2> x = {{1, 7}}, dy = {{1, 0}};
  for (const auto backward : {norm_backward, norm_by_rows}) {
    const NormGradients got = backward(x, {{1, 1}, {}}, Norm::rms, 0, dy);
    CHECK(all_close(got.x, Tensor<2>{{0.196f, -0.028f}}, 2 * u));
    CHECK(all_close(got.weights.gain, Tensor<1>{0.2f, 0}, 2 * u));
    CHECK(got.weights.bias.size() == 0);
    // A gain of (3, 2) makes u = (3, 0); the gain's own gradient does not change.
    const NormGradients scaled = backward(x, {{3, 2}, {}}, Norm::rms, 0, dy);
    CHECK(all_close(scaled.x, Tensor<2>{{0.588f, -0.084f}}, 4 * u));
    CHECK(all_close(scaled.weights.gain, Tensor<1>{0.2f, 0}, 2 * u));
    // (1, 1) with eps = 3: r = 1/2, x̂ = (½, ½), mean(u·x̂) = ¼, dx = (1 − ⅛, −⅛) / 2. (With eps
    // left out r would be 1 and dx (½, −½).)
    const NormGradients with_eps = backward(Tensor<2>{{1, 1}}, {{1, 1}, {}}, Norm::rms, 3, dy);
    CHECK(all_close(with_eps.x, Tensor<2>{{0.4375f, -0.0625f}}, 2 * u));
  }
}

TEST_CASE("by hand: LayerNorm of (1, 1, 3, 3)") {
  // Mean 2, deviation 1, x̂ = (−1, −1, 1, 1). u = dy = (4, 0, 0, 0) has the mean 1, and mean(u·x̂)
  // is −1: dx = u − 1 + x̂.
  for (const auto backward : {norm_backward, norm_by_rows}) {
    const NormGradients got =
        backward({{1, 1, 3, 3}}, {{1, 1, 1, 1}, {5, 6, 7, 8}}, Norm::layer, 0, {{4, 0, 0, 0}});
    CHECK(all_close(got.x, Tensor<2>{{2, -2, 0, 0}}, 8 * u));
    CHECK(all_close(got.weights.gain, Tensor<1>{-4, 0, 0, 0}, 4 * u));
    CHECK(all_close(got.weights.bias, Tensor<1>{4, 0, 0, 0}, 0));
  }
}

TEST_CASE("both norms: formula and kernel are what finite differences give in float64") {
  for (const Norm kind : {Norm::rms, Norm::layer})
    for (const size_t C : {3, 5, 17, 67})
      for (const float eps : {0.0f, 1e-2f}) {
        const bool layer = kind == Norm::layer;
        CAPTURE(layer);
        CAPTURE(C);
        CAPTURE(eps);
        const size_t T = 5;
        const Tensor<2> rows = numbers(1, 4, 0.5f, T, C), dy = numbers(4, 2, 0, T, C);
        const NormWeights weights = some_weights(kind, C);
        Doubles x(rows), gain(weights.gain), bias(weights.bias);
        double largest_r = 0;
        const auto loss = [&] {
          Doubles y(T, C);
          for (size_t t = 0; t < T; ++t) {
            double mean = 0, square = 0;
            for (size_t c = 0; layer && c < C; ++c) mean += x(t, c) / double(C);
            for (size_t c = 0; c < C; ++c) square += std::pow(x(t, c) - mean, 2) / double(C);
            const double r = 1 / std::sqrt(square + double(eps));
            largest_r = std::max(largest_r, r);
            for (size_t c = 0; c < C; ++c)
              y(t, c) = gain(0, c) * (x(t, c) - mean) * r + (layer ? bias(0, c) : 0);
          }
          return dot(dy, y);
        };
        const Tensor<2> dx = by_differences(x, loss), dgain = by_differences(gain, loss);
        const Tensor<2> dbias = by_differences(bias, loss);
        for (const auto backward : {norm_backward, norm_by_rows}) {
          const NormGradients got = backward(rows, weights, kind, eps, dy);
          // u is at most 1.5 and x̂ at most about 2, so that u − x̂·mean(u·x̂) has parts of at most
          // 6, and r multiplies them. Before that x − mean has lost the last bits of numbers up to
          // 2.5, a share of 2.5·r of x̂. Gains add up T numbers of size 2.
          CHECK(all_close(got.x, dx, rounding(C, 6 * largest_r * std::max(1.0, largest_r))));
          CHECK(all_close(as_matrix(got.weights.gain), dgain, rounding(T, 4 * largest_r)));
          if (layer) CHECK(all_close(as_matrix(got.weights.bias), dbias, rounding(T, 2)));
        }
      }
}

TEST_CASE("both norms equal PyTorch's autograd") {
  const size_t T = 13, C = 67;
  const Tensor<2> x = numbers(1, 4, 0.5f, T, C), dy = numbers(4, 2, 0, T, C);
  for (const Norm kind : {Norm::rms, Norm::layer}) {
    const bool layer = kind == Norm::layer;
    const Tensor<2> want = reference<2>(layer ? "layer" : "rms");
    for (const auto backward : {norm_backward, norm_by_rows}) {
      const NormGradients got = backward(x, some_weights(kind, C), kind, 1e-2f, dy);
      CHECK(all_close(got.x, rows_of(want, 0, T), rounding(C, 6)));  // as above, with r about 0.8
      CHECK(all_close(as_matrix(got.weights.gain), rows_of(want, T, 1), rounding(T, 8)));
      if (layer)
        CHECK(all_close(as_matrix(got.weights.bias), rows_of(want, T + 1, 1), rounding(T, 8)));
    }
  }
}

TEST_CASE("a norm's gradient stands at a right angle on its row; LayerNorm's adds up to 0") {
  const size_t T = 6, C = 41;
  const Tensor<2> x = numbers(1, 3, 1, T, C), dy = numbers(4, 2, 0, T, C);
  for (const Norm kind : {Norm::rms, Norm::layer})
    for (const auto backward : {norm_backward, norm_by_rows}) {
      const Tensor<2> dx = backward(x, some_weights(kind, C), kind, 0, dy).x;
      for (size_t t = 0; t < T; ++t) {
        double along = 0, sum = 0;
        for (size_t c = 0; c < C; ++c) {
          along += double(dx(t, c)) * double(x(t, c));
          sum += double(dx(t, c));
        }
        // Each of C numbers of dx, of size 2, is off by some roundings, and x is at most 2.5.
        CHECK(std::abs(along) <= std::sqrt(double(C)) * rounding(C, 2 * 2.5));
        if (kind == Norm::layer) CHECK(std::abs(sum) <= std::sqrt(double(C)) * rounding(C, 2));
      }
    }
}

TEST_CASE("the norms' kernel adds to all of its gradients, which may be parts of others") {
  const size_t T = 4, C = 19;
  const Tensor<2> x = numbers(1, 4, 0.5f, T, C), dy = numbers(4, 2, 0, T, C);
  for (const Norm kind : {Norm::rms, Norm::layer}) {
    const NormWeights weights = some_weights(kind, C);
    const NormGradients once = norm_by_rows(x, weights, kind, 1e-2f, dy);
    NormWeights sums{3 * xt::ones<float>({C}), 4 * xt::ones_like(weights.bias)};
    Tensor<2> wide = xt::ones<float>({T, C + 2});
    Tensor<1> scratch = empty(2 * T);
    for (int i = 0; i < 2; ++i)
      add_norm_backward(x, weights, kind, 1e-2f, dy, Matrix(wide).cols_from(1, C), sums,
                        row(scratch));
    CHECK(all_close(copy_of(ConstMatrix(wide).cols_from(1, C)), Tensor<2>(1 + 2 * once.x), 16 * u));
    CHECK(all_close(sums.gain, Tensor<1>(3 + 2 * once.weights.gain), 64 * u));
    CHECK(all_close(sums.bias, Tensor<1>(4 + 2 * once.weights.bias), 64 * u));
    for (size_t t = 0; t < T; ++t) CHECK((wide(t, 0) == 1 && wide(t, C + 1) == 1));
  }
}

TEST_CASE("a NaN reaches all gradients that it has a part in, and no others") {
  for (const Norm kind : {Norm::rms, Norm::layer})
    for (const auto backward : {norm_backward, norm_by_rows}) {
      const NormWeights weights = some_weights(kind, 21);
      Tensor<2> x = numbers(1, 4, 0.5f, 3, 21), dy = numbers(4, 2, 0, 3, 21);
      dy(1, 20) = NAN;
      const NormGradients of_dy = backward(x, weights, kind, 1e-2f, dy);
      CHECK(is_nan(row(of_dy.x, 1)));
      CHECK((is_finite(row(of_dy.x, 0)) && is_finite(row(of_dy.x, 2))));
      CHECK((is_nan(row(of_dy.weights.gain).last(1)) &&
             is_finite(row(of_dy.weights.gain).first(20))));
      dy(1, 20) = 0, x(2, 3) = NAN;
      const NormGradients of_x = backward(x, weights, kind, 1e-2f, dy);
      CHECK(is_nan(row(of_x.x, 2)));
      CHECK(is_finite(row(of_x.x, 0)));
      CHECK(is_nan(row(of_x.weights.gain)));
    }
}

TEST_CASE("norms refuse shapes that disagree") {
  const Tensor<2> x = zeros(3, 4), other = zeros(3, 5);
  const NormWeights rms{zeros(4), {}}, layer{zeros(4), zeros(4)};
  for (const auto backward : {norm_backward, norm_by_rows}) {
    REFUSES(backward(x, {zeros(5), {}}, Norm::rms, 1, x), "gain: wanted shape [4], got [5]");
    REFUSES(backward(x, layer, Norm::rms, 1, x), "bias: wanted shape [0], got [4]");
    REFUSES(backward(x, rms, Norm::layer, 1, x), "bias: wanted shape [4], got [0]");
    REFUSES(backward(x, rms, Norm::rms, 1, other), "dy: wanted shape [3, 4], got [3, 5]");
  }
  Tensor<2> dx = zeros(3, 4), short_dx = zeros(2, 4);
  Tensor<1> scratch = zeros(6);
  const auto add = [&](Matrix to, NormWeights gradients, size_t room, Norm kind = Norm::rms) {
    add_norm_backward(x, kind == Norm::rms ? rms : layer, kind, 1, x, to, gradients,
                      row(scratch).first(room));
  };
  REFUSES(add(short_dx, rms, 6), "dx: wanted shape [3, 4], got [2, 4]");
  REFUSES(add(dx, {zeros(3), {}}, 6), "the gain's gradient: wanted shape [4], got [3]");
  REFUSES(add(dx, layer, 6), "the bias's gradient: wanted shape [0], got [4]");
  REFUSES(add(dx, rms, 6, Norm::layer), "the bias's gradient: wanted shape [4], got [0]");
  REFUSES(add(dx, rms, 5), "scratch: wanted at least 2 elements for each row, got 5");
  CHECK_NOTHROW(add(dx, layer, 6, Norm::layer));
}

// The loss.

TEST_CASE("by hand: the loss of probabilities 1/4 and 3/4") {
  // Logits ln 1 and ln 3. The loss of the first is ln 4, of the second ln(4/3).
  const float ln3 = std::log(3.0f);
  Tensor<2> logits = {{0, ln3}, {0, ln3}, {5, 5}};
  std::vector<double> losses(3);
  const double sum = cross_entropy_rows(logits, std::vector{0, 1, not_learned}, 2, losses);
  CHECK(std::abs(losses[0] - std::log(4.0)) <= 8 * u);
  CHECK(std::abs(losses[1] - std::log(4.0 / 3)) <= 8 * u);
  CHECK(losses[2] == 0);
  CHECK(sum == losses[0] + losses[1]);
  // The probabilities, less 1 at the target, times the scale of 2.
  CHECK(all_close(logits, Tensor<2>{{-1.5f, 1.5f}, {0.5f, -0.5f}, {0, 0}}, 8 * u));
}

/// Targets for V = 37, of which every third is not learned.
static std::vector<int> some_targets(size_t T, size_t V) {
  std::vector<int> targets;
  for (size_t t = 0; t < T; ++t)
    targets.push_back(t % 3 == 2 ? not_learned : int((7 * t * t + 3) % V));
  return targets;
}

TEST_CASE("the loss and its gradient are what float64 and finite differences give") {
  for (const size_t V : {1, 2, 37, 130})
    for (const size_t T : {1, 5}) {
      CAPTURE(V);
      CAPTURE(T);
      const std::vector<int> targets = some_targets(T, V);
      Tensor<2> logits = numbers(1, 12, 0, T, V);
      const float scale = 1 / float(count_learned(targets));
      Doubles x(logits);
      const auto sum = [&] {
        double sum = 0;
        for (size_t t = 0; t < T; ++t) {
          double exps = 0;
          for (size_t v = 0; v < V; ++v) exps += std::exp(x(t, v));
          if (targets[t] != not_learned) sum += std::log(exps) - x(t, size_t(targets[t]));
        }
        return sum;
      };
      std::vector<double> losses(T);
      const double want_sum = sum();
      const Tensor<2> want = by_differences(x, [&] { return double(scale) * sum(); });
      // Probabilities and a sum of exponentials with a share of a few roundings and of its V terms.
      CHECK(std::abs(cross_entropy_rows(logits, targets, scale, losses) - want_sum) <=
            double(T) * rounding(V, 1));
      CHECK(all_close(logits, want, rounding(V, double(scale))));
      for (size_t t = 0; t < T; ++t) {
        double of_row = 0;
        for (const float gradient : row(logits, t)) of_row += double(gradient);
        CHECK(std::abs(of_row) <= rounding(V, double(scale)));
      }
    }
}

TEST_CASE("the loss and its gradient equal PyTorch's") {
  const size_t T = 11, V = 37;
  Tensor<2> logits = numbers(7, 12, 0, T, V);
  const std::vector<int> targets = some_targets(T, V);
  CHECK(count_learned(targets) == 8);
  std::vector<double> losses(T + 2, -7);  // of more room, the first T are used
  const double sum = cross_entropy_rows(logits, targets, 1.0f / 8, losses);
  const Tensor<1> want = reference<1>("cross_entropy_loss");
  CHECK(std::abs(sum - double(want(0))) <= rounding(V, 64));  // of 59: the file has a float
  CHECK(all_close(logits, reference<2>("cross_entropy"), rounding(V, 1.0 / 8)));
  CHECK((losses[T] == -7 && losses[T + 1] == -7));
}

TEST_CASE("logits of 1000 are as good as small ones, and a NaN is not lost") {
  Tensor<2> logits = {{1000, -1000, 0}, {1000, 999, -1000}, {1, NAN, 2}, {1, 2, NAN}, {1, 1, 1}};
  std::vector<double> losses(5);
  const double sum = cross_entropy_rows(logits, std::vector{1, 0, 0, 2, 2}, 1, losses);
  CHECK(losses[0] == 2000);
  const double p = 1 / (1 + std::exp(-1.0));
  CHECK(std::abs(losses[1] + std::log(p)) <= 8 * u);
  CHECK(all_close(rows_of(logits, 0, 1), Tensor<2>{{1, -1, 0}}, 0));
  CHECK(all_close(rows_of(logits, 1, 1), Tensor<2>{{float(p - 1), float(1 - p), 0}}, 8 * u));
  for (const size_t t : {2, 3}) CHECK((std::isnan(losses[t]) && is_nan(row(logits, t))));
  CHECK(std::isnan(sum));
  CHECK(is_finite(row(logits, 4)));
}

TEST_CASE("a row that is not learned gets gradients of 0, even if its logits are not finite") {
  Tensor<2> logits = {{NAN, 1, 2}, {1, -INFINITY, 2}, {1, 1, 1}};
  std::vector<double> losses(3);
  const double sum =
      cross_entropy_rows(logits, std::vector{not_learned, not_learned, 0}, 1, losses);
  CHECK(all_close(rows_of(logits, 0, 2), zeros(2, 3), 0));
  CHECK((losses[0] == 0 && losses[1] == 0));
  CHECK(std::abs(sum - std::log(3.0)) <= 8 * u);
}

TEST_CASE("the loss refuses targets outside the vocabulary, and too few of anything") {
  Tensor<2> logits = numbers(1, 2, 0, 2, 4);
  const Tensor<2> before = logits;
  std::vector<double> losses(2), one(1);
  const auto call = [&](std::vector<int> targets, std::span<double> to) {
    return cross_entropy_rows(logits, targets, 1, to);
  };
  REFUSES(call({0, 4}, losses),
          "targets: token 1 is 4, wanted one in [0, 4), or -1 for one that is not learned");
  REFUSES(call({-2, 0}, losses),
          "targets: token 0 is -2, wanted one in [0, 4), or -1 for one that is not learned");
  REFUSES(call({0, 1, 2}, losses), "targets: wanted one for each row of logits, got 3");
  REFUSES(call({0, 1}, one), "losses: wanted room for one of each row, got 1");
  CHECK(all_close(logits, before, 0));  // nothing was overwritten
  CHECK(count_learned(std::vector<int>{}) == 0);
  CHECK(count_learned(std::vector{3, not_learned, 0, not_learned}) == 2);
}

// The embedding.

TEST_CASE("by hand: tokens 2, 0, 2 of a table with 3 rows, and two texts of 2 positions") {
  const Tensor<2> dx = {{1, 10}, {2, 20}, {4, 40}, {8, 80}};
  Tensor<2> table = xt::ones<float>({3, 2}), positions = table;
  add_embedding_gradient(std::vector{2, 0, 2}, ConstMatrix(dx).rows_from(0, 3), table);
  CHECK(all_close(table, Tensor<2>{{3, 21}, {1, 1}, {6, 51}}, 0));
  add_positions_gradient(2, dx, positions);
  CHECK(all_close(positions, Tensor<2>{{6, 51}, {11, 101}, {1, 1}}, 0));
}

TEST_CASE("the embedding's gradient is one-hot rows, transposed, times dx") {
  const size_t T = 50, V = 7;
  std::vector<int> ids;
  for (size_t t = 0; t < T; ++t) ids.push_back(int(t * t % 5));  // 0, 1 and 4 many times
  for (const size_t C : {1, 3, 65, 130}) {
    const Tensor<2> dx = numbers(1, 2, 0, T, C);
    Tensor<2> want = zeros(V, C), got = zeros(V + 2, C + 2), all = got;
    add_weight_gradient(one_hot(ids, V), dx, want);
    const Matrix table = Matrix(got).rows_from(1, V).cols_from(1, C);
    add_embedding_gradient(ids, dx, table);
    CHECK(all_close(copy_of(table), want, rounding(T, 8)));
    xt::view(all, xt::range(1, V + 1), xt::range(1, C + 1)) = copy_of(table);
    CHECK(all_close(got, all, 0));  // nothing beside it was written
  }
}

TEST_CASE("the embedding refuses ids, shapes and lengths that do not fit") {
  const Tensor<2> dx = zeros(4, 3);
  Tensor<2> table = zeros(3, 3), wide = zeros(3, 5);
  REFUSES(add_embedding_gradient(std::vector{0, 3, 1, 1}, dx, table),
          "ids: token 1 is 3, outside [0, 3), the vocabulary");
  REFUSES(add_embedding_gradient(std::vector{0, 1, -1, 1}, dx, table),
          "ids: token 2 is -1, outside [0, 3), the vocabulary");
  REFUSES(add_embedding_gradient(std::vector{0, 1}, dx, table),
          "dx: wanted shape [2, 3], got [4, 3]");
  REFUSES(add_embedding_gradient(std::vector{0, 1, 1, 1}, dx, wide),
          "dx: wanted shape [4, 5], got [4, 3]");
  REFUSES(add_positions_gradient(0, dx, table),
          "T, the tokens of a sequence: wanted a divisor of the rows, got 0");
  // Three does not divide four rows: in other words, either number may be the one that is refused.
  const auto three = [&] { add_positions_gradient(3, dx, table); };
  const RefusedCall of_T = refusal_of<std::invalid_argument>(
      three, "T, the tokens of a sequence: wanted a divisor of the rows, got 3");
  const RefusedCall of_rows =
      refusal_of<std::invalid_argument>(three, "rows of dx: wanted a multiple of T = 3, got 4");
  if (!in_own_words() || !of_rows) CHECK(of_T);
  REFUSES(add_positions_gradient(4, dx, table),
          "T, the tokens of a sequence: wanted at most T_max, the rows of the table, got 4");
  REFUSES(add_positions_gradient(2, dx, wide), "dx: wanted shape [4, 5], got [4, 3]");
}

// All of them.

/// All kernels of these parts but attention at once, at a size that several threads share.
struct AllKernels {
  static constexpr size_t T = 70, C = 300;
  const Tensor<2> x = numbers(1, 4, 0.5f, T, C), start = numbers(2, 2, 0, T, C);
  const NormWeights weights = some_weights(Norm::layer, C);
  const std::vector<int> targets = some_targets(T, C);
  Tensor<2> dy = start, dx = zeros(T, C), dgate = zeros(T, C), table = zeros(5, C), logits = x;
  Tensor<1> db = zeros(C), scratch = zeros(2 * T);
  NormWeights gradients{zeros(C), zeros(C)};
  std::vector<int> tokens = std::vector<int>(T, 3);
  std::vector<double> losses = std::vector<double>(T);
  double loss = 0;

  void run() {
    dy = start, logits = x;
    dx.fill(0), table.fill(0), db.fill(0), gradients.gain.fill(0), gradients.bias.fill(0);
    again();
  }
  void again() {
    add_bias_gradient(dy, db);
    add_norm_backward(x, weights, Norm::layer, 1e-5f, dy, dx, gradients, row(scratch));
    add_embedding_gradient(tokens, dy, table);
    add_positions_gradient(5, dy, table);
    activate_backward_rows(Activation::gelu, x, dy);
    gated_backward_rows(Activation::swiglu, x, x, dy, dgate);
    loss = cross_entropy_rows(logits, targets, 0.5f, losses);
  }
  std::vector<float> bits() const {
    const float of_loss[] = {float(loss)};
    return joined({all_of(dy), all_of(dx), all_of(dgate), all_of(table), all_of(logits), row(db),
                   row(gradients.gain), row(gradients.bias), of_loss});
  }
};

TEST_CASE("the same bits on one thread, two and three; and nothing is allocated") {
  AllKernels kernels;
  const size_t threads = thread_count();
  set_threads(1);
  kernels.run();
  const std::vector<float> one = kernels.bits();
  CHECK(is_finite(one));
  for (const int count : {2, 3, 2}) {
    CAPTURE(count);
    set_threads(count);
    kernels.run();
    CHECK(std::ranges::equal(kernels.bits(), one));
  }
  CHECK(allocates_nothing(3, [&] { kernels.again(); }));
  set_threads(int(threads));
}

}  // namespace t2t::backward_test
