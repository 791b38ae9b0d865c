// What must be true of the activations and of the feed-forward network, as formulas and by rows.
#include <doctest/doctest.h>
#include <fmt/ranges.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "07_swiglu/fast/activation_rows.hpp"
#include "07_swiglu/fast/feed_forward_rows.hpp"
#include "07_swiglu/fast/feed_forward_weights.hpp"
#include "07_swiglu/feed_forward.hpp"
#include "files/npy.hpp"
#include "support/all_close.hpp"
#include "support/allocations.hpp"
#include "support/apart.hpp"
#include "support/packed_stand_ins.hpp"
#include "support/refuses.hpp"

using namespace t2t;
using Use = Activation;

static constexpr Use without_gate[] = {Use::relu, Use::gelu, Use::gelu_tanh, Use::silu};
static constexpr Use with_gate[] = {Use::glu, Use::reglu, Use::geglu, Use::geglu_tanh, Use::swiglu};
static constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

static Tensor<2> fixture(const std::string& name) {
  return load_npy<2>(T2T_FIXTURES "/" + name + ".npy");
}
static Tensor<1> fixture_row(const std::string& name) {
  return load_npy<1>(T2T_FIXTURES "/" + name + ".npy");
}

static Tensor<2> by_rows(Activation activation, const Tensor<2>& x) {
  Tensor<2> y = empty(x.shape(0), x.shape(1));
  activate_rows(activation, x, y);
  return y;
}
static Tensor<2> by_rows(Activation activation, const Tensor<2>& gate, const Tensor<2>& up) {
  Tensor<2> y = empty(gate.shape(0), gate.shape(1));
  gated_rows(activation, gate, up, y);
  return y;
}
static Tensor<2> by_rows(const Tensor<2>& x, const FeedForwardWeights& weights,
                         Activation activation) {
  FeedForwardScratch scratch(x.shape(0) + 2, weights.w_up.rows(), activation);
  Tensor<2> y = empty(x.shape(0), x.shape(1));
  feed_forward_rows(x, weights, activation, scratch, y);
  return y;
}

/// Every number its own, of either sign, so that no two places can be taken for each other.
static Tensor<2> some_rows(std::size_t T, std::size_t C, float size = 4) {
  return Random(T * 1000 + C).uniform<2>({T, C}, -size, size);
}

// u = 2^-24 is half the distance from 1 to the next float. exp, erf and tanh are good to some 2u of
// their result, exp's argument and √2's rounding move it by |x|·u more where the result still
// counts (|x| below 4), and a sum, a division and two products add u each: under 12u of |x|, or of
// |gate·up|.
static constexpr double bound = 12 * 0x1p-24;

/// all_close with a bound of its own for each number: bound times its size.
static Closeness close_for_size(const Tensor<2>& got, const Tensor<2>& want,
                                const Tensor<2>& sizes) {
  const Tensor<2> floor = xt::maximum(xt::abs(sizes), 1e-6f);
  return all_close(Tensor<2>(got / floor), Tensor<2>(want / floor), bound);
}

TEST_CASE("by hand: silu(ln 3) is three quarters of ln 3, silu and gelu of 0 are 0") {
  const float ln3 = 1.0986123f;  // so that σ is 1 / (1 + 1/3)
  const Tensor<2> x = {{ln3, -ln3, 0}}, want = {{0.75f * ln3, -0.25f * ln3, 0}};
  CHECK(all_close(silu(x), want, bound));
  CHECK(all_close(by_rows(Use::silu, x), want, bound));
}

TEST_CASE(
    "by hand: a number from N(0, 1) is below 1 with probability 0.8413, and the tanh form is "
    "close") {
  const Tensor<2> x = {{1, -1}};
  const Tensor<2> erf_form = {{0.84134475f, -0.15865525f}},
                  tanh_form = {{0.84119199f, -0.15880801f}};
  CHECK(all_close(by_rows(Use::gelu, x), erf_form, bound));
  CHECK(all_close(by_rows(Use::gelu_tanh, x), tanh_form, bound));
}

TEST_CASE(
    "by hand: swiglu of gate ln 3 and up 2 is 1.5 ln 3; each likely mistake gives another number") {
  const Tensor<2> gate = {{1.0986123f}}, up = {{2}}, want = {{1.6479184f}};
  CHECK(all_close(swiglu(gate, up), want, 2 * bound));
  CHECK(all_close(by_rows(Use::swiglu, gate, up), want, 2 * bound));
  CHECK(all_close(swiglu(up, gate), Tensor<2>{{1.9353f}}, 1e-4));                  // swapped
  CHECK(all_close(glu(gate, up), Tensor<2>{{1.5f}}, 1e-4));                        // σ for SiLU
  CHECK(all_close(silu(gate * up), Tensor<2>{{1.9775f}}, 1e-4));                   // of the product
  CHECK(all_close(Tensor<2>(silu(gate) * silu(up)), Tensor<2>{{1.4514f}}, 1e-4));  // both
}

TEST_CASE("each activation equals PyTorch's in float64, formula and rows") {
  const Tensor<2> x = fixture("x"), up = fixture("up");  // within ±10
  for (const Use activation : without_gate) {
    CAPTURE(activation_name(activation));
    const Tensor<2> want = fixture(std::string(activation_name(activation)));
    CHECK(close_for_size(activate(activation, x), want, x));
    CHECK(close_for_size(by_rows(activation, x), want, x));
  }
  for (const Use activation : with_gate) {
    CAPTURE(activation_name(activation));
    const Tensor<2> want = fixture(std::string(activation_name(activation)));
    const Tensor<2> sizes = activation == Use::glu ? up : Tensor<2>(x * up);  // σ is at most 1
    CHECK(close_for_size(gated(activation, x, up), want, sizes));
    CHECK(close_for_size(by_rows(activation, x, up), want, sizes));
  }
  CHECK(all_close(sigmoid(x), fixture("sigmoid"), bound));
}

TEST_CASE(
    "the two forms of GELU differ by less than 4.8e-4 from -10 to 10, and by 4.7e-4 near 2.7") {
  Tensor<2> x = empty(1, 2001);
  for (std::size_t i = 0; i < 2001; ++i) x(0, i) = (float(i) - 1000) / 100;
  CHECK(all_close(gelu(x), gelu_tanh(x), 4.8e-4));
  CHECK(std::abs(gelu({{2.7f}})(0, 0) - gelu_tanh({{2.7f}})(0, 0)) > 4.7e-4f);
}

TEST_CASE("rows of any length are written to their end and no further, in place too") {
  for (const std::size_t F : {1, 2, 15, 16, 17, 33, 682, 29'569}) {
    CAPTURE(F);
    const Tensor<2> gate = some_rows(3, F), up = some_rows(4, F);
    const Tensor<2> up3 = xt::view(up, xt::range(0, 3));
    const Tensor<2> want = swiglu(gate, up3);
    Tensor<2> on_gate = gate, on_up = up3, on_x = gate;
    gated_rows(Use::swiglu, on_gate, up3, on_gate);
    gated_rows(Use::swiglu, gate, on_up, on_up);
    activate_rows(Use::silu, on_x, on_x);
    CHECK(all_close(by_rows(Use::swiglu, gate, up3), want, 16 * bound));
    CHECK(all_close(on_gate, want, 16 * bound));
    CHECK(all_close(on_up, want, 16 * bound));
    CHECK(all_close(on_x, silu(gate), 4 * bound));
  }
}

TEST_CASE("far from zero each is 0 on the left and x on the right; NaN stays NaN, alone") {
  const Tensor<2> x = {{-30, -88.5f, -104, -1e4f, -3e38f, 30, 88.5f, 104, 1e4f, 3e38f}};
  const Tensor<2> want = {{0, 0, 0, 0, 0, 30, 88.5f, 104, 1e4f, 3e38f}}, ones = xt::ones_like(x);
  const Tensor<2> with_nan = {{1, not_a_number, 1}}, two = {{1, 2, 3}};
  const auto only_nan_inside = [](const Tensor<2>& y) {
    return Closeness{y(0, 0) > 0.5f && std::isnan(y(0, 1)) && y(0, 2) > 0.5f,
                     fmt::format("got {}, wanted a number above 0.5, NaN, and another above 0.5",
                                 fmt::join(row(y, 0), ", "))};
  };
  for (const Use activation : without_gate) {
    CAPTURE(activation_name(activation));
    CHECK(all_close(activate(activation, x), want, 1e-11));
    CHECK(all_close(by_rows(activation, x), want, 1e-11));  // 30 · e^-30 is 2.8e-12
    CHECK(only_nan_inside(activate(activation, with_nan)));
    CHECK(only_nan_inside(by_rows(activation, with_nan)));
  }
  CHECK(all_close(by_rows(Use::swiglu, x, ones), want, 1e-11));
  for (const Use activation : with_gate) {
    CAPTURE(activation_name(activation));
    CHECK(only_nan_inside(gated(activation, with_nan, two)));
    CHECK(only_nan_inside(by_rows(activation, with_nan, two)));
    CHECK(only_nan_inside(by_rows(activation, two, with_nan)));
  }
}

TEST_CASE("far from zero a gate is closed on the left, and open on the right") {
  const Tensor<2> gate = {{-30, -88.5f, -104, -1e4f, -3e38f, 30, 88.5f, 104, 1e4f, 3e38f}};
  Tensor<2> up = xt::ones_like(gate) * -0.5f;
  const Tensor<2> sigmoids = {{0, 0, 0, 0, 0, -0.5f, -0.5f, -0.5f, -0.5f, -0.5f}};
  const Tensor<2> others = {{0, 0, 0, 0, 0, -15, -44.25f, -52, -5e3f, -1.5e38f}};
  for (const Use activation : with_gate) {
    CAPTURE(activation_name(activation));
    const Tensor<2>& want = activation == Use::glu ? sigmoids : others;
    CHECK(all_close(gated(activation, gate, up), want, 1e-11));  // 30 · e^-30 is 2.8e-12
    CHECK(all_close(by_rows(activation, gate, up), want, 1e-11));
  }
  CHECK(all_close(sigmoid(gate), Tensor<2>(sigmoids * -2), 1e-11));
  up = -gate * 0.9f;  // closed or open, whatever the size of the other number
  const Tensor<2> closed = {{0, 0, 0, 0, 0}};
  for (const Use activation : with_gate) {
    CAPTURE(activation_name(activation));
    const Tensor<2> formula = gated(activation, gate, up), rows = by_rows(activation, gate, up);
    // 30 · 27 · e^-30 is 8e-11.
    CHECK(all_close(Tensor<2>(xt::view(formula, xt::all(), xt::range(0, 5))), closed, 1e-10));
    CHECK(all_close(Tensor<2>(xt::view(rows, xt::all(), xt::range(0, 5))), closed, 1e-10));
  }
}

TEST_CASE("near zero gelu and silu halve a number, relu keeps or drops it; down to 2^-100") {
  const Tensor<2> x = {{0x1p-100f, -0x1p-100f, 0x1p-40f, -0x1p-40f, 0}};
  const Tensor<2> half = x / 2, relus = {{0x1p-100f, 0, 0x1p-40f, 0, 0}};
  // Scaled, so that the bound is one of relative errors; the curves bend by x² / 2, 2^-81 here.
  const Tensor<2> scale = {{0x1p100f, 0x1p100f, 0x1p40f, 0x1p40f, 1}};
  for (const Use activation : without_gate) {
    CAPTURE(activation_name(activation));
    const Tensor<2> want = scale * (activation == Use::relu ? relus : half);
    CHECK(all_close(Tensor<2>(scale * activate(activation, x)), want, bound));
    CHECK(all_close(Tensor<2>(scale * by_rows(activation, x)), want, bound));
  }
}

TEST_CASE("f(x) - f(-x) = x: so two gated units multiply two channels, exactly but for rounding") {
  FeedForwardWeights weights;
  weights.w_gate = Tensor<2>{{1, 0}, {-1, 0}};  // a, -a
  weights.w_up = Tensor<2>{{0, 1}, {0, 1}};     // b, b
  weights.w_down = Tensor<2>{{1, -1}, {0, 0}};
  const Tensor<2> x = {{3, 4}, {-2, 5}, {0.5f, -8}}, want = {{12, 0}, {-10, 0}, {-4, 0}};
  for (const Use activation : {Use::reglu, Use::geglu, Use::geglu_tanh, Use::swiglu}) {
    CAPTURE(activation_name(activation));
    CHECK(all_close(feed_forward(x, weights, activation), want, 12 * bound));
    CHECK(all_close(by_rows(x, weights, activation), want, 12 * bound));
  }
}

static FeedForwardWeights fixture_weights(bool is_gated) {
  FeedForwardWeights weights;
  weights.w_up = fixture("network_w_up");
  weights.w_down = fixture("network_w_down");
  if (is_gated) return weights.w_gate = fixture("network_w_gate"), weights;
  weights.b_up = fixture_row("network_b_up");
  weights.b_down = fixture_row("network_b_down");
  return weights;
}

// Sums of C = 6 and F = 7 numbers below 3 in size, a product of two such sums between them: the
// hidden numbers stay below 16, each carries (6 + 12)u of itself or less, and 7 of them are summed.
static constexpr double network_bound = 7 * 16 * (6 + 6 + 12) * 0x1p-24;

TEST_CASE("the networks equal PyTorch's in float64: SwiGLU, and GPT-2's with biases") {
  const Tensor<2> x = fixture("network_x");  // [5, 6]
  const Tensor<2> want = fixture("network_swiglu"), want_gpt2 = fixture("network_gpt2");
  const FeedForwardWeights three = fixture_weights(true), two = fixture_weights(false);
  CHECK(all_close(feed_forward(x, three, Use::swiglu), want, network_bound));
  CHECK(all_close(by_rows(x, three, Use::swiglu), want, network_bound));
  CHECK(all_close(feed_forward(x, two, Use::gelu_tanh), want_gpt2, network_bound));
  CHECK(all_close(by_rows(x, two, Use::gelu_tanh), want_gpt2, network_bound));
}

TEST_CASE("1500 hidden numbers of 30 tokens, which the threads share: each token as if alone") {
  const std::size_t T = 30, C = 40, F = 1500;
  for (const Use activation : {Use::swiglu, Use::gelu}) {
    Random random(9);
    const FeedForwardWeights weights = feed_forward_weights(C, F, activation, random);
    const Tensor<2> x = some_rows(T, C, 1), whole = feed_forward(x, weights, activation);
    const Tensor<2> got = by_rows(x, weights, activation);
    // Sums of F numbers of size up to 1, added in any order.
    const double most = 8 * std::sqrt(double(F)) * 0x1p-24;
    CHECK(all_close(got, whole, most));
    for (std::size_t t = 0; t < T; ++t) {
      const Tensor<2> alone = by_rows(copy_of(ConstMatrix(x).rows_from(t, 1)), weights, activation);
      CHECK(all_close(copy_of(ConstMatrix(got).rows_from(t, 1)), alone, most));
    }
  }
  const Tensor<2> gate = some_rows(T, F), up = some_rows(T, F, 3);
  const Tensor<2> of_rows = by_rows(Use::swiglu, gate, up), formula = swiglu(gate, up);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < formula.size(); ++i) {
    const double g = gate.data()[i], exact = g / (1 + std::exp(-g)) * double(up.data()[i]);
    const double most = bound * std::abs(g * double(up.data()[i])) + 1e-30;
    wrong += !(std::abs(of_rows.data()[i] - exact) <= most);
    wrong += !(std::abs(formula.data()[i] - exact) <= most);
  }
  CHECK(wrong == 0);
}

TEST_CASE("a token's result does not depend on other tokens, or on being written over x") {
  for (const Use activation : {Use::swiglu, Use::gelu}) {
    CAPTURE(activation_name(activation));
    Random random(3);
    const FeedForwardWeights weights = feed_forward_weights(33, 89, activation, random);
    FeedForwardScratch scratch(5, 89, activation);
    Tensor<2> x = some_rows(5, 33, 1);
    const Tensor<2> want = feed_forward(x, weights, activation);
    const double sums = (33 + 89) * 0x1p-24 * 8;  // of numbers of size 1, some 8 at most
    for (std::size_t t = 0; t < 5; ++t) {
      Tensor<2> y = empty(1, 33);
      feed_forward_rows(ConstMatrix(x).rows_from(t, 1), weights, activation, scratch, y);
      const Tensor<2> want_t = xt::view(want, xt::range(t, t + 1));
      CHECK(all_close(y, want_t, sums));
    }
    feed_forward_rows(x, weights, activation, scratch, x);
    CHECK(all_close(x, want, sums));
  }
}

TEST_CASE("a NaN in one token makes that token's result NaN, and changes no other") {
  for (const Use activation : {Use::swiglu, Use::relu, Use::gelu_tanh}) {
    CAPTURE(activation_name(activation));
    const FeedForwardWeights weights = fixture_weights(is_gated(activation));
    Tensor<2> x = fixture("network_x");  // [5, 6]
    const Tensor<2> formula = feed_forward(x, weights, activation);
    const Tensor<2> kernel = by_rows(x, weights, activation);
    x(3, 5) = not_a_number;
    const auto expect_nan_in_token_3 = [](const Tensor<2>& got, const Tensor<2>& before) {
      for (std::size_t t = 0; t < 5; ++t)
        for (std::size_t c = 0; c < 6; ++c) {
          INFO(fmt::format("token {}, channel {}: got {}, before {}", t, c, got(t, c),
                           before(t, c)));
          CHECK((t == 3 ? std::isnan(got(t, c)) : got(t, c) == before(t, c)));
        }
    };
    expect_nan_in_token_3(feed_forward(x, weights, activation), formula);
    expect_nan_in_token_3(by_rows(x, weights, activation), kernel);
  }
}

TEST_CASE(
    "in a wider scratch the hidden numbers are the first F of each row; the rest is untouched") {
  const Tensor<2> x = fixture("network_x");  // [5, 6]
  const FeedForwardWeights three = fixture_weights(true);
  FeedForwardScratch scratch(8, 9, Use::swiglu);
  scratch.gate.fill(5), scratch.up.fill(5);
  Tensor<2> y = empty(5, 6);
  feed_forward_rows(x, three, Use::swiglu, scratch, y);
  CHECK(all_close(y, fixture("network_swiglu"), network_bound));
  const Tensor<2> hidden = swiglu(matmul_bt(x, three.w_gate), matmul_bt(x, three.w_up));  // [5, 7]
  CHECK(all_close(copy_of(ConstMatrix(scratch.up).rows_from(0, 5).cols_from(0, 7)), hidden,
                  network_bound));
  for (std::size_t t = 0; t < 8; ++t)
    for (std::size_t f = t < 5 ? 7 : 0; f < 9; ++f) CHECK(scratch.up(t, f) == 5);
}

TEST_CASE("the network by rows allocates nothing") {
  const Tensor<2> x = fixture("network_x");  // [5, 6]
  for (const Use activation : {Use::swiglu, Use::gelu_tanh}) {
    CAPTURE(activation_name(activation));
    const FeedForwardWeights weights = fixture_weights(is_gated(activation));
    FeedForwardScratch scratch(5, 7, activation);
    Tensor<2> y = empty(5, 6);
    feed_forward_rows(x, weights, activation, scratch, y);
    CHECK(allocates_nothing(3, [&] { feed_forward_rows(x, weights, activation, scratch, y); }));
  }
}

TEST_CASE("weights are drawn in the order gate, up, down, with deviations 1/√C and 1/√F") {
  Random random(4), same(4);
  const FeedForwardWeights weights = feed_forward_weights(16, 25, Use::swiglu, random);
  const float of_C = 0.25f, of_F = 0.2f;
  CHECK(all_close(weights.w_gate.floats(), same.normal<2>({25, 16}, of_C), 1e-6));
  CHECK(all_close(weights.w_up.floats(), same.normal<2>({25, 16}, of_C), 1e-6));
  CHECK(all_close(weights.w_down.floats(), same.normal<2>({16, 25}, of_F), 1e-6));
  const FeedForwardWeights plain = feed_forward_weights(16, 25, Use::gelu, random);
  CHECK(plain.w_gate.size() == 0);
  CHECK(all_close(plain.w_up.floats(), same.normal<2>({25, 16}, of_C), 1e-6));
  CHECK(all_close(plain.w_down.floats(), same.normal<2>({16, 25}, of_F), 1e-6));
}

TEST_CASE("gate and up are shown before the activation's result overwrites up") {
  const Tensor<2> x = fixture("network_x");  // [5, 6]
  const FeedForwardWeights three = fixture_weights(true), two = fixture_weights(false);
  Tensor<2> y = empty(5, 6);
  int seen = 0;
  FeedForwardScratch scratch(5, 7, Use::swiglu);
  feed_forward_rows(x, three, Use::swiglu, scratch, y, [&](ConstMatrix gate, ConstMatrix up) {
    CHECK(all_close(copy_of(gate), matmul_bt(x, three.w_gate), 0));
    CHECK(all_close(copy_of(up), matmul_bt(x, three.w_up), 0));
    ++seen;
  });
  feed_forward_rows(x, two, Use::gelu, scratch, y, [&](ConstMatrix gate, ConstMatrix up) {
    CHECK(gate.rows == 0);
    CHECK(all_close(copy_of(up), Tensor<2>(matmul_bt(x, two.w_up) + two.b_up), 0));
    ++seen;
  });
  CHECK(seen == 2);
}

TEST_CASE(
    "at two thirds of 4C three matrices hold as many numbers as two; rounded as LLaMA rounds") {
  for (const std::size_t C : {3, 48, 576, 768}) CHECK(3 * C * gated_width(C, 1) == 8 * C * C);
  CHECK(gated_width(1, 1) == 2);
  CHECK(gated_width(256, 1) == 682);  // 682.67, rounded down
  CHECK(gated_width(576, 256) == 1536);
  CHECK(gated_width(4096) == 11008);  // LLaMA 7B, 13B, 33B and 65B
  CHECK(gated_width(5120) == 13824);
  CHECK(gated_width(6656) == 17920);
  CHECK(gated_width(8192) == 22016);

  Random random(1);
  CHECK(parameter_count(feed_forward_weights(48, 128, Use::swiglu, random)) == 8 * 48 * 48);
  CHECK(parameter_count(feed_forward_weights(48, 192, Use::gelu, random)) == 8 * 48 * 48);
}

TEST_CASE("biases of networks with one channel, or one hidden number, are added too") {
  const Tensor<2> x = {{2}}, one = {{1}};
  FeedForwardWeights weights;
  weights.w_up = one;
  weights.w_down = one;
  weights.b_up = Tensor<1>{3};
  weights.b_down = Tensor<1>{10};
  const Tensor<2> want = {{15}};  // relu(2 + 3) + 10
  CHECK(all_close(feed_forward(x, weights, Use::relu), want, 0));
  CHECK(all_close(by_rows(x, weights, Use::relu), want, 0));
}

TEST_CASE("rows may be parts of wider ones, each of another width") {
  Tensor<2> wide_gate = some_rows(12, 20), wide_up = some_rows(12, 23), wide_y = some_rows(12, 19);
  const Matrix gate = Matrix(wide_gate).cols_from(2, 17), up = Matrix(wide_up).cols_from(0, 17),
               y = Matrix(wide_y).cols_from(1, 17);
  const Tensor<2> gates = copy_of(gate), ups = copy_of(up);
  gated_rows(Use::swiglu, gate, up, y);
  CHECK(all_close(copy_of(y), by_rows(Use::swiglu, gates, ups), 0));
  activate_rows(Use::gelu, gate, y);
  CHECK(all_close(copy_of(y), by_rows(Use::gelu, gates), 0));
}

TEST_CASE(
    "weights may be packed: rows multiply each in its own form, the formula reads its floats") {
  const Tensor<2> x = fixture("network_x");
  for (const Use activation : {Use::swiglu, Use::gelu}) {
    CAPTURE(activation_name(activation));
    const FeedForwardWeights weights = fixture_weights(is_gated(activation));
    FeedForwardWeights packed = weights;
    for (Weight* w : {&packed.w_gate, &packed.w_up, &packed.w_down})
      if (w->size() > 0) *w = doubled(w->floats());
    CHECK(all_close(by_rows(x, packed, activation), by_rows(x, weights, activation), 0));
    CHECK(all_close(feed_forward(x, packed, activation), feed_forward(x, weights, activation), 0));
  }
}

TEST_CASE("a network may have one of its two biases alone") {
  const Tensor<2> x = {{2}}, one = {{1}};
  FeedForwardWeights weights;
  weights.w_up = one, weights.w_down = one, weights.b_down = Tensor<1>{10};
  const Tensor<2> down = {{12}};  // relu(2) + 10
  CHECK(all_close(feed_forward(x, weights, Use::relu), down, 0));
  CHECK(all_close(by_rows(x, weights, Use::relu), down, 0));
  weights.b_up = Tensor<1>{-1}, weights.b_down = {};
  const Tensor<2> up = {{1}};  // relu(2 − 1)
  CHECK(all_close(feed_forward(x, weights, Use::relu), up, 0));
  CHECK(all_close(by_rows(x, weights, Use::relu), up, 0));
}

TEST_CASE("many rows that do not fit are refused by name, and y stays as it was") {
  const Tensor<2> x = some_rows(300, 100), wide = some_rows(300, 101);
  Tensor<2> y = xt::zeros_like(x);
  REFUSES(gated_rows(Use::swiglu, x, wide, y), "up: wanted shape [300, 100], got [300, 101]");
  REFUSES(activate_rows(Use::silu, wide, y), "y: wanted shape [300, 101], got [300, 100]");
  REFUSES(gated_rows(Use::silu, x, x, y), "activation: wanted one with a gate, got silu");
  CHECK(all_close(y, xt::zeros_like(x), 0));
}

TEST_CASE("the formulas refuse by name what does not fit") {
  const Tensor<2> x = some_rows(2, 6), up = some_rows(7, 6), down = some_rows(6, 7), none;
  REFUSES(gated_network(x, up, down, down, Use::swiglu), "w_up: wanted shape [6, 6], got [6, 7]");
  REFUSES(gated_network(x, up, up, up, Use::swiglu), "w_down: wanted shape [6, 7], got [7, 6]");
  REFUSES(gated_network(x, down, up, down, Use::swiglu), "w_gate: wanted shape [7, 6], got [6, 7]");
  REFUSES(gated_network(x, up, up, down, Use::relu),
          "activation: wanted one with a gate, got relu");
  REFUSES(gated_network(x, none, none, none, Use::swiglu),
          "F, the rows of w_up: wanted at least 1, got 0");
  const Tensor<1> six = xt::ones<float>({std::size_t(6)}),
                  seven = xt::ones<float>({std::size_t(7)});
  REFUSES(plain_network(x, up, six, down, {}, Use::relu), "b_up: wanted shape [7], got [6]");
  REFUSES(plain_network(x, up, {}, down, seven, Use::relu), "b_down: wanted shape [6], got [7]");
  REFUSES(plain_network(x, up, {}, up, {}, Use::relu), "w_down: wanted shape [6, 7], got [7, 6]");
  REFUSES(plain_network(x, up, {}, down, {}, Use::swiglu),
          "activation: wanted one without a gate, got swiglu");
}

TEST_CASE("what does not fit is refused by name") {
  const Tensor<2> x = some_rows(2, 6), wide = some_rows(2, 7);
  FeedForwardWeights weights = fixture_weights(true);
  REFUSES(feed_forward(wide, weights, Use::swiglu), "w_up: wanted shape [7, 7], got [7, 6]");
  REFUSES(feed_forward(x, weights, Use::gelu), "w_gate: wanted shape [0, 0], got [7, 6]");
  REFUSES(feed_forward(x, fixture_weights(false), Use::swiglu),
          "w_gate: wanted shape [7, 6], got [0, 0]");
  weights.b_up = fixture_row("network_b_up");
  REFUSES(feed_forward(x, weights, Use::swiglu), "b_up: wanted shape [0], got [7]");
  weights.w_down = some_rows(7, 6);
  REFUSES(feed_forward(x, weights, Use::swiglu), "w_down: wanted shape [6, 7], got [7, 6]");
  REFUSES(feed_forward(x, {}, Use::gelu), "F, the rows of w_up: wanted at least 1, got 0");

  weights = fixture_weights(true);
  FeedForwardScratch scratch(1, 7, Use::swiglu), of_plain(2, 7, Use::gelu);
  Tensor<2> y = empty(2, 6);
  REFUSES(feed_forward_rows(x, weights, Use::swiglu, scratch, y),
          "scratch.up: wanted at least [2, 7], got [1, 7]");
  y.fill(5), of_plain.up.fill(5);
  REFUSES(feed_forward_rows(x, weights, Use::swiglu, of_plain, y),
          "scratch.gate: wanted at least [2, 7], got [0, 0]");
  INFO("nothing may be written before everything is checked; each number was 5");
  CAPTURE(y(0, 0));
  CAPTURE(of_plain.up(0, 0));
  CHECK(xt::all(xt::equal(y, 5)));
  CHECK(xt::all(xt::equal(of_plain.up, 5)));
  FeedForwardScratch narrow(2, 6, Use::swiglu), narrow_gate(2, 7, Use::swiglu),
      short_gate(2, 7, Use::swiglu);
  REFUSES(feed_forward_rows(x, weights, Use::swiglu, narrow, y),
          "scratch.up: wanted at least [2, 7], got [2, 6]");
  narrow_gate.gate = empty(2, 6);
  REFUSES(feed_forward_rows(x, weights, Use::swiglu, narrow_gate, y),
          "scratch.gate: wanted at least [2, 7], got [2, 6]");
  short_gate.gate = empty(1, 7);
  REFUSES(feed_forward_rows(x, weights, Use::swiglu, short_gate, y),
          "scratch.gate: wanted at least [2, 7], got [1, 7]");
  Tensor<2> three_rows = empty(3, 6);
  FeedForwardScratch enough(2, 7, Use::swiglu);
  REFUSES(feed_forward_rows(x, weights, Use::swiglu, enough, three_rows),
          "y: wanted shape [2, 6], got [3, 6]");
  weights = fixture_weights(false);
  weights.b_up = fixture_row("network_b_down");
  REFUSES(feed_forward(x, weights, Use::gelu), "b_up: wanted shape [7], got [6]");
  weights = fixture_weights(false);
  weights.b_down = fixture_row("network_b_up");
  REFUSES(feed_forward(x, weights, Use::gelu), "b_down: wanted shape [6], got [7]");
  weights = fixture_weights(true);
  weights.b_down = fixture_row("network_b_down");
  REFUSES(feed_forward(x, weights, Use::swiglu), "b_down: wanted shape [0], got [6]");
  REFUSES(swiglu(x, wide), "up: wanted shape [2, 6], got [2, 7]");
  REFUSES(swiglu(x, some_rows(1, 6)), "up: wanted shape [2, 6], got [1, 6]");
  REFUSES(gated_rows(Use::swiglu, x, wide, y), "up: wanted shape [2, 6], got [2, 7]");
  REFUSES(gated_rows(Use::swiglu, x, x, three_rows), "y: wanted shape [2, 6], got [3, 6]");
  REFUSES(activate_rows(Use::silu, x, three_rows), "y: wanted shape [2, 6], got [3, 6]");
  CHECK(ending_apart([&] { gated(Use::silu, x, x); }).starts_with("threw"));  // or it crashes
  REFUSES(gated(Use::silu, x, x), "activation: wanted one with a gate, got silu");
  REFUSES(gated_rows(Use::silu, x, x, y), "activation: wanted one with a gate, got silu");
  REFUSES(activate_rows(Use::swiglu, x, y), "activation: wanted one without a gate, got swiglu");
  REFUSES(activate(Use::swiglu, x), "activation: wanted one without a gate, got swiglu");
  REFUSES(gated_width(0), "C: wanted at least 1, got 0");
  REFUSES(gated_width(64, 0), "multiple: wanted at least 1, got 0");
}
