// What must be true of the task that needs two heads, and of biases added to the scores.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

#include "03_rope/positions/positions.hpp"
#include "04_causal_attention/biases/biased_attention.hpp"
#include "04_causal_attention/multi_head.hpp"
#include "04_causal_attention/proof/two_values.hpp"
#include "04_causal_attention/softmax.hpp"
#include "files/npy.hpp"
#include "linalg.hpp"
#include "support/all_close.hpp"
#include "support/refuses.hpp"

namespace t2t::heads_test {

static constexpr double u = 0x1p-24;  // half a unit in the last place of 1: one rounding

static Tensor<3> zeros(std::size_t H, std::size_t T, std::size_t S) {
  return xt::zeros<float>({H, T, S});
}

TEST_CASE("two heads bring home both numbers, each in its own channel") {
  const AttentionWeights weights = weights_of_two_heads();
  for (const float a : {0.f, 1.f, -3.f})
    for (const float b : {0.f, 1.f, 0.25f})
      CHECK(all_close(two_values(a, b, weights, 2), Tensor<1>{a, b}, 3 * 4 * u));
}

TEST_CASE("of the two heads, head 0 alone brings home the first number, head 1 the second") {
  for (std::size_t h = 0; h < 2; ++h) {
    AttentionWeights alone = weights_of_two_heads();
    const std::size_t other = 2 * (1 - h);  // the other head's first channel
    xt::view(alone.w_o, xt::all(), xt::range(other, other + 2)) = 0;
    const Tensor<1> want = {h == 0 ? 3.f : 0.f, h == 1 ? 5.f : 0.f};
    CHECK(all_close(two_values(3, 5, alone, 2), want, 5 * 4 * u));
  }
}

TEST_CASE("one head by hand: the first number, or the mean of both") {
  CHECK(all_close(two_values(1, 5, weights_of_one_head(40, 0), 1), Tensor<1>{1, 1}, 8 * u));
  CHECK(all_close(two_values(1, 5, weights_of_one_head(0, 0), 1), Tensor<1>{3, 3}, 8 * u));
  // Scores ln 3 and 0: weights 3/4 and 1/4.
  const AttentionWeights leaning = weights_of_one_head(std::log(3.f), 0);
  CHECK(all_close(two_values(1, 5, leaning, 1), Tensor<1>{2, 2}, 16 * u));
}

TEST_CASE("one head with large values comes near both numbers, and not nearer than its error") {
  for (const float error : {0.1f, 0.01f})
    for (const float a : {0.f, 1.f})
      for (const float b : {0.f, 1.f}) {
        const Tensor<1> got = two_values(a, b, weights_of_one_head_near(error), 1);
        const float off = a == b ? 0 : error;  // in both channels
        CHECK(all_close(got, Tensor<1>{a + off, b + off}, 2 * 25 * 8 * u));
      }
}

TEST_CASE("one head, any weights: from both numbers 0 to both 1, the weights stay as they are") {
  Random random(1);
  for (int draw = 0; draw < 20; ++draw) {
    const AttentionWeights weights = draw_attention_weights(4, random);
    const Tensor<1> moved = two_values(1, 1, weights, 1) - two_values(0, 0, weights, 1);
    const Tensor<2> number = {{0, 0, 0, 1}};
    const Tensor<2> alone = matmul_bt(matmul_bt(number, weights.w_v), weights.w_o);
    CHECK(all_close(moved, Tensor<1>{alone(0, 0), alone(0, 1)}, 100 * u));  // sums of 4 up to 3
  }
}

TEST_CASE("biases by hand: equal scores and biases ln 3, 0 give weights 3/4, 1/4; D changes none") {
  for (const std::size_t D : {1, 4, 64}) {
    const Tensor<3> q = zeros(2, 1, D), k = zeros(2, 2, D);
    Tensor<3> biases = zeros(2, 1, 2), want = zeros(2, 1, 2);
    biases(0, 0, 0) = std::log(3.f);
    want(0, 0, 0) = 0.75f, want(0, 0, 1) = 0.25f;
    want(1, 0, 0) = want(1, 0, 1) = 0.5f;
    CHECK(all_close(biased_attention_weights(q, k, biases, Mask::none), want, 4 * u));
  }
}

TEST_CASE("biases: a row's common number changes nothing, -infinity hides a key, the mask holds") {
  Random random(2);
  const Tensor<3> q = random.normal<3>({2, 3, 8}), k = random.normal<3>({2, 5, 8});
  const Tensor<3> none = zeros(2, 3, 5), common = none + 3.f;
  const Tensor<3> plain = biased_attention_weights(q, k, none, Mask::causal);
  CHECK(all_close(biased_attention_weights(q, k, common, Mask::causal), plain, 32 * u));
  for (std::size_t h = 0; h < 2; ++h) {
    const Tensor<2> head =
        attention_weights(xt::view(q, h), xt::view(k, h), Mask::causal);  // [T, S]
    CHECK(all_close(Tensor<2>(xt::view(plain, h)), head, 16 * u));
  }

  const Tensor<2> mask_added = attention_mask(3, 5, Mask::causal);  // [T, S]
  const Tensor<3> hiding = none + mask_added;
  CHECK(all_close(biased_attention_weights(q, k, hiding, Mask::none), plain, 0));
  CHECK(plain(1, 0, 3) == 0);
}

TEST_CASE("biased attention equals PyTorch's in float64") {
  const auto load = [](const char* name) {
    return load_npy<3>(std::string(T2T_FIXTURES "/biased_") + name + ".npy");
  };
  // Sums of 8 and of 9 terms up to 4, as in the tests of attention without biases.
  const double bound = 8 * (std::sqrt(8.0) / 2 + 3.0 / 2) * u;
  CHECK(all_close(biased_attention(load("q"), load("k"), load("v"), load("biases"), Mask::causal),
                  load("out"), bound));
}

TEST_CASE("ALiBi by hand: with equal scores, one key back weighs e^-slope as much") {
  const std::size_t H = 2, T = 2, S = 3;
  const Tensor<3> weights =
      biased_attention_weights(zeros(H, T, 4), zeros(H, S, 4), alibi_biases(H, T, S), Mask::causal);
  const Tensor<1> slopes = alibi_slopes(H);
  for (std::size_t h = 0; h < H; ++h) {
    const float ratio = std::exp(-slopes(h));
    CHECK(std::abs(weights(h, 1, 1) - ratio * weights(h, 1, 2)) <= 8 * u);
    CHECK(std::abs(weights(h, 1, 0) - ratio * ratio * weights(h, 1, 2)) <= 8 * u);
    CHECK(weights(h, 0, 2) == 0);
  }
}

TEST_CASE("biases of another shape are refused") {
  const Tensor<3> q = zeros(2, 3, 4), k = zeros(2, 5, 4);
  REFUSES(biased_attention_weights(q, k, zeros(1, 3, 5), Mask::causal),
          "biases: wanted shape [2, 3, 5], got [1, 3, 5]");
  REFUSES(biased_attention(q, k, zeros(2, 4, 4), zeros(2, 3, 5), Mask::causal),
          "v: wanted shape [2, 5, 4], got [2, 4, 4]");
  REFUSES(biased_attention_weights(zeros(2, 3, 0), zeros(2, 5, 0), zeros(2, 3, 5), Mask::causal),
          "D, the width of a head: wanted at least 1, got 0");
  const Tensor<3> all_masked = zeros(2, 3, 5) - std::numeric_limits<float>::infinity();
  REFUSES(biased_attention_weights(q, k, all_masked, Mask::causal),
          "softmax: row 0 is all -infinity: a mask that hides every key");
}

}  // namespace t2t::heads_test
