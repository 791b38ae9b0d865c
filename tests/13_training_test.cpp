// What must be true of the optimizer: AdamW, the learning rate's schedule and clipping. Before it
// stand page 13's examples by hand of backward passes, which have test files of their own.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "13_training/attention/attention_backward.hpp"
#include "13_training/backward/cross_entropy.hpp"
#include "13_training/backward/embedding_backward.hpp"
#include "13_training/backward/linear_backward.hpp"
#include "13_training/backward/norm_backward.hpp"
#include "13_training/cases.hpp"
#include "13_training/trainer/adamw.hpp"
#include "13_training/trainer/schedule.hpp"
#include "linalg.hpp"
#include "rows.hpp"
#include "support/all_close.hpp"
#include "support/allocations.hpp"
#include "support/first_difference.hpp"
#include "support/hashed_numbers.hpp"
#include "support/refuses.hpp"

namespace t2t::training_test {

using std::size_t;

static constexpr double u = 0x1p-24;  // one rounding of a number up to 1

// Page 13's examples of backward passes.

TEST_CASE("by hand: a product's three gradients, added to what was there") {
  const Tensor<2> x = {{1, 2}, {3, 4}}, w = {{5, 6}, {7, 8}}, dy = {{1, 0}, {0, 2}};
  Tensor<2> dx = {{100, 100}, {100, 100}}, dw = {{10, 10}, {10, 10}};
  Tensor<1> db = {1, 1};
  add_input_gradient(dy, w, dx);
  add_weight_gradient(dy, x, dw);
  add_bias_gradient(dy, db);
  CHECK(all_close(dx, Tensor<2>{{105, 106}, {114, 116}}, 0));
  CHECK(all_close(dw, Tensor<2>{{11, 12}, {16, 18}}, 0));
  CHECK(all_close(db, Tensor<1>{2, 3}, 0));
}

TEST_CASE("by hand: the norm of (3, 4) hands back what stands at a right angle on it") {
  // r = 1/√12.5, x̂ = (0.8485, 1.1314); u = (1, 0) has the mean 0.4243 along x̂.
  const NormGradients got =
      norm_backward(Tensor<2>{{3, 4}}, {{1, 1}, {}}, Norm::rms, 0, Tensor<2>{{1, 0}});
  CHECK(all_close(got.x, Tensor<2>{{0.181019f, -0.135765f}}, 1e-6));
  CHECK(all_close(got.weights.gain, Tensor<1>{0.848528f, 0}, 1e-6));
  CHECK(std::abs(3 * got.x(0, 0) + 4 * got.x(0, 1)) < 1e-6);
}

TEST_CASE("by hand: softmax of two equal scores passes half a difference") {
  CHECK(all_close(softmax_backward({{0.5f, 0.5f}}, {{1, 0}}), Tensor<2>{{0.25f, -0.25f}}, 0));
}

TEST_CASE("by hand: cross-entropy of two equal logits") {
  Tensor<2> logits = {{3, 3}, {1, 2}};
  std::vector<double> losses(2);
  CHECK(cross_entropy_rows(logits, Ids{1, not_learned}, 0.5f, losses) ==
        doctest::Approx(std::log(2.0)).epsilon(1e-6));
  CHECK(all_close(logits, Tensor<2>{{0.25f, -0.25f}, {0, 0}}, u));
  CHECK(count_learned(Ids{1, not_learned, 0}) == 2);
}

TEST_CASE("by hand: a token that comes twice adds up, positions begin anew in each text") {
  Tensor<2> table = xt::zeros<float>({3, 65}), positions = table;
  Tensor<2> dx = empty(4, 65);
  dx.fill(0);
  for (size_t t = 0; t < 4; ++t) dx(t, 64) = float(t + 1);
  add_embedding_gradient(Ids{2, 0, 2, 2}, dx, table);
  CHECK(table(2, 64) == 8);
  CHECK(table(0, 64) == 2);
  CHECK(table(1, 64) == 0);
  add_positions_gradient(2, dx, positions);
  CHECK(positions(0, 64) == 4);
  CHECK(positions(1, 64) == 6);
  CHECK(positions(2, 64) == 0);
}

// AdamW.

namespace {
/// Weights with AdamW's two means, and room for it.
struct Moved {
  Tensor<1> w, mean = xt::zeros_like(w), square = xt::zeros_like(w);
  std::vector<double> scratch = std::vector<double>(adamw_pieces(w.size()));
  double step(const AdamWStep& step, float decay, const Tensor<1>& g) {
    return adamw_step(step, decay, row(w), row(g), row(mean), row(square), scratch);
  }
};
}  // namespace

TEST_CASE("by hand: AdamW's first step is the rate, against the sign of the gradient") {
  Moved x{Tensor<1>{1, 1, 1, -2}};
  const double moved = x.step({{}, 0.01f, 1}, 0, {0.5f, -8, 0.03125f, 0});
  CHECK(all_close(x.w, Tensor<1>{0.99f, 1.01f, 0.99f, -2}, 4 * u));
  CHECK(all_close(x.mean, Tensor<1>{0.05f, -0.8f, 0.003125f, 0}, 4 * u));
  CHECK(all_close(x.square, Tensor<1>{0.0125f, 3.2f, 0.000048828125f, 0}, 32 * u));
  CHECK(moved == doctest::Approx(3e-4).epsilon(1e-5));
}

TEST_CASE("by hand: two steps, with eps of a half and the decay of a quarter") {
  const AdamW options{.beta1 = 0.5f, .beta2 = 0.75f, .eps = 0.5f};
  Moved x{Tensor<1>{4}};
  // The mean becomes 1, of which half is there yet: 2. The square becomes 1, a quarter of 4, whose
  // root is 2. So 4 moves by ½·(2/(2 + ½) + ¼·4) = ½·(0.8 + 1).
  double moved = x.step({options, 0.5f, 1}, 0.25f, {2});
  CHECK(all_close(x.w, Tensor<1>{3.1f}, 4 * u));
  CHECK(all_close(x.mean, Tensor<1>{1}, 0));
  CHECK(all_close(x.square, Tensor<1>{1}, 0));
  CHECK(moved == doctest::Approx(0.81).epsilon(1e-6));
  // The gradient is 20·¼ = 5. The mean becomes ½ + 2½ = 3, three quarters of 4. The square becomes
  // ¾ + 6¼ = 7, which is 1 − ¾² = 7/16 of 16, whose root is 4: ½·(4/(4 + ½) + ¼·3.1).
  moved = x.step({options, 0.5f, 2, 0.25f}, 0.25f, {20});
  CHECK(all_close(x.w, Tensor<1>{2.2680556f}, 8 * u));
  CHECK(all_close(x.mean, Tensor<1>{3}, 0));
  CHECK(all_close(x.square, Tensor<1>{7}, 0));
  CHECK(moved == doctest::Approx(0.8319444 * 0.8319444).epsilon(1e-6));
}

TEST_CASE("by hand: without a gradient, the decay alone moves a weight towards 0") {
  Moved x{Tensor<1>{8, -3, 0}};
  x.step({{}, 0.5f, 7}, 0.25f, {0, 0, 0});
  CHECK(all_close(x.w, Tensor<1>{7, -2.625f, 0}, 0));
  x.step({{}, 0.5f, 8}, 0, {0, 0, 0});
  CHECK(all_close(x.w, Tensor<1>{7, -2.625f, 0}, 0));
}

TEST_CASE("by hand: under one gradient again and again, every step moves a weight by the rate") {
  // The running means of 1 and of 1², divided by 1 − βⁿ, are 1 after every number of steps. After
  // 300 steps 1 − 0.999ⁿ is still only 0.26.
  Moved x{Tensor<1>{0, 0}};
  const AdamW options{.beta2 = 0.999f};
  for (std::size_t n = 1; n <= 300; ++n) {
    const double moved = x.step({options, 0.01f, n}, 0, {1, -1});
    CAPTURE(n);
    REQUIRE(moved == doctest::Approx(2e-4).epsilon(1e-3));
  }
  CHECK(all_close(x.w, Tensor<1>{-3, 3}, 3e-3));
}

TEST_CASE("matrices and tables decay, gains and biases do not") {
  for (const Role role :
       {Role::matrix, Role::router, Role::into_stream, Role::embedding, Role::positions}) {
    CAPTURE(int(role));
    CHECK(decays(role));
  }
  CHECK_FALSE(decays(Role::gain));
  CHECK_FALSE(decays(Role::bias));
}

TEST_CASE("20 steps of AdamW with schedule and clipping are those of PyTorch in float64") {
  Moved w{numbers(1, 2, 0, 4200)}, gain{numbers(2, 1, 1, 60)};  // a piece, a part of one; one part
  const Schedule schedule{.peak = 0.05f, .floor = 0.005f, .warmup = 5, .steps = 20};
  const AdamW options{.eps = 1e-3f};
  double rates = 0;
  for (std::uint32_t n = 1; n <= 20; ++n) {
    const float scale = n % 3 == 0 ? 0.01f : 4, middle = n % 3 == 0 ? 0 : 0.5f;
    Tensor<1> g = numbers(100 + n, scale, middle, 4200),
              of_gain = numbers(200 + n, scale, middle, 60);
    const TensorInfo info{"w", 4200, 1, Role::matrix};
    const double norm = gradient_norm({{info, row(g)}, {info, row(of_gain)}});
    const AdamWStep step{options, rate_at(schedule, n), n, clip_factor(norm, 1)};
    w.step(step, 0.1f, g), gain.step(step, 0, of_gain);
    rates += double(step.rate);
  }
  // Weights of up to 2 are rounded 20 times, up about as often as down. A move is up to twice the
  // rate here and has about ten roundings, those of the running means among them.
  const double bound = 2 * std::sqrt(20) * u + 2 * 10 * u * rates;
  const Tensor<1> want = reference_row("adamw");
  CHECK(all_close(w.w, Tensor<1>(xt::view(want, xt::range(0, 4200))), bound));
  CHECK(all_close(gain.w, Tensor<1>(xt::view(want, xt::range(4200, 4260))), bound));
}

TEST_CASE("every number of a tensor moves, in pieces of any length, and the moves are added up") {
  for (const size_t size : {1, 7, 4095, 4096, 4097, 9000}) {
    CAPTURE(size);
    Moved x{numbers(1, 2, 0, size)};
    const Tensor<1> before = x.w, g = numbers(2, 4, 0, size);
    const double moved = x.step({{}, 0.01f, 1}, 0, g);
    Tensor<1> want = before;
    for (size_t i = 0; i < size; ++i) want(i) -= std::copysign(0.01f, g(i));
    CHECK(all_close(x.w, want, 1e-6));  // eps shortens the move of the smallest gradient
    CHECK(moved == doctest::Approx(1e-4 * double(size)).epsilon(1e-4));
  }
}

TEST_CASE("AdamW has the same bits on one thread, two and three; and allocates nothing") {
  const auto run = [] {
    Moved x{numbers(1, 2, 0, 50000)};
    double moved = 0;
    for (std::uint32_t n = 1; n <= 3; ++n)
      moved += x.step({{}, 0.01f, n, 0.5f}, 0.1f, numbers(10 + n, 4, 0.1f, 50000));
    std::vector<float> all(x.w.begin(), x.w.end());
    all.insert(all.end(), x.mean.begin(), x.mean.end());
    all.insert(all.end(), x.square.begin(), x.square.end());
    return std::pair(all, moved);
  };
  const int threads = int(thread_count());
  set_threads(1);
  const auto one = run();
  for (const int count : {2, 3, 2}) {
    CAPTURE(count);
    set_threads(count);
    const auto other = run();
    INFO(first_difference(other.first, one.first));
    CHECK(other == one);
  }
  set_threads(threads);

  Moved x{numbers(1, 2, 0, 50000)};
  Tensor<1> g = x.w;
  const std::vector<ListedTensor> list = {{{"w", 50000, 1, Role::matrix}, row(g)}};
  CHECK(allocates_nothing(1, [&] { x.step({{}, 0.01f, 1}, 0.1f, g); }));
  CHECK(allocates_nothing(1, [&] { gradient_norm(list); }));
}

TEST_CASE("AdamW refuses sizes that differ, too little scratch and a step of 0") {
  Moved x{Tensor<1>{1, 2, 3}};
  REFUSES(x.step({{}, 0.01f, 1}, 0, {1, 2}), "g: wanted shape [3], got [2]");
  REFUSES(x.step({{}, 0.01f, 0}, 0, {1, 2, 3}), "n, the step: wanted at least 1, got 0");
  x.mean = Tensor<1>{0};
  REFUSES(x.step({{}, 0.01f, 1}, 0, {1, 2, 3}), "mean: wanted shape [3], got [1]");
  x.mean = Tensor<1>{0, 0, 0}, x.square = Tensor<1>{0, 0};
  REFUSES(x.step({{}, 0.01f, 1}, 0, {1, 2, 3}), "square: wanted shape [3], got [2]");
  Moved large{numbers(1, 2, 0, 4097)};
  large.scratch.pop_back();
  REFUSES(
      large.step({{}, 0.01f, 1}, 0, large.w),
      "scratch: wanted one element for each piece, got " + std::to_string(large.scratch.size()));
}

// The schedule, and clipping.

TEST_CASE("by hand: up in ten steps, down in a hundred, and then at the floor") {
  const Schedule schedule{.peak = 1, .floor = 0.2f, .warmup = 10, .steps = 110};
  const auto check = [](const Schedule& of, const std::map<size_t, double>& rates) {
    for (const auto& rate : rates) {
      CAPTURE(rate.first);
      CHECK(std::abs(double(rate_at(of, rate.first)) - rate.second) <= 2 * u);
    }
  };
  // After a quarter of the way down the height is (1 + cos 45°)/2.
  check(schedule, {{1, 0.1}, {5, 0.5}, {10, 1}, {35, 0.2 + 0.8 * 0.853553391}, {60, 0.6}});
  check(schedule, {{110, 0.2}, {111, 0.2}, {100000, 0.2}});
  // Without a warm-up the first step has moved on from the peak already, by a quarter of the way.
  check({.peak = 1, .floor = 0, .warmup = 0, .steps = 4}, {{1, 0.853553391}, {2, 0.5}, {4, 0}});
  // A warm-up that takes all steps ends at the peak.
  check({.peak = 1, .floor = 0.2f, .warmup = 4, .steps = 4}, {{1, 0.25}, {4, 1}, {5, 0.2}});
}

TEST_CASE("the schedule is PyTorch's linear warm-up and cosine") {
  const Tensor<2> want = reference("rates");
  Tensor<2> got = empty(2, 40);
  for (size_t n = 1; n <= 40; ++n) {
    got(0, n - 1) = rate_at({.peak = 0.05f, .floor = 0.005f, .warmup = 5, .steps = 40}, n);
    got(1, n - 1) = rate_at({.peak = 0.05f, .floor = 0.005f, .warmup = 1, .steps = 40}, n);
  }
  CHECK(all_close(got, want, 4 * 0.05 * u));  // four roundings
}

TEST_CASE("by hand: gradients 3 and 4 in two tensors have the norm 5") {
  Tensor<1> a = {0, 3}, b = {-4}, none;
  const TensorInfo info{"w", 1, 1, Role::matrix};
  const double norm = gradient_norm({{info, row(a)}, {info, row(b)}});
  CHECK(norm == 5);
  CHECK(clip_factor(norm, 1) == 0.2f);
  CHECK(clip_factor(norm, 2.5) == 0.5f);
  CHECK(clip_factor(norm, 5) == 1);
  CHECK(clip_factor(norm, 6) == 1);
  CHECK(clip_factor(0.5, 1) == 1);
  CHECK(clip_factor(norm, 0) == 1);
  CHECK(clip_factor(0, 1) == 1);
  CHECK(gradient_norm({}) == 0);
}

TEST_CASE("the first tensor with a number that is not finite is named") {
  Tensor<1> good = {1, -2}, bad = {0, 0, std::numeric_limits<float>::infinity()};
  const ListedTensor a{{"embedding", 2, 1, Role::matrix}, row(good)};
  const ListedTensor b{{"w_q", 3, 1, Role::matrix, 3}, row(bad)};
  ListedTensor c{{"head", 3, 1, Role::matrix}, row(bad)};
  CHECK(first_not_finite({a}).empty());
  CHECK(first_not_finite({a, b, c}) == "layer 3: w_q");
  bad(2) = -std::nanf("");
  CHECK(first_not_finite({a, c, b}) == "head");
}

}  // namespace t2t::training_test
