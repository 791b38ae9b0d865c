// What must be true of the experts: the formula against the row kernel, and what they refuse.
#include "14_mixture_of_experts/experts.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "07_swiglu/fast/feed_forward_rows.hpp"
#include "12_quantization/packed/packed_weight.hpp"
#include "13_training/differences.hpp"
#include "14_mixture_of_experts/made.hpp"
#include "linalg.hpp"
#include "support/all_close.hpp"
#include "support/allocations.hpp"
#include "support/lists.hpp"
#include "support/refuses.hpp"

namespace t2t::experts_test {

using std::size_t;

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
        Tensor<2> unpacked;
        floats.experts[e].*w = floats_of(packed.experts[e].*w, unpacked);
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
    CHECK(loops_allocate_nothing([&] { by_rows(x, packed); }));
    // The router's products are made in a loop over the tokens, where packed ones would need
    // memory.
    packed.router = packed_floats(TensorType::q8_0, floats.router.floats());
    REFUSES(by_rows(x, packed), "a weight [6, 256]: wanted floats, got packed numbers");
    REFUSES(mixture_of_experts(x, packed.view()),
            "a weight [6, 256]: wanted floats, got packed numbers");
  }
}

TEST_CASE("choices that are made already: each result counts with the weight that is given") {
  const Made some = made(3, 2);
  const Tensor<2> x = numbers(9, 2, 0, 3, 12), weights = {{2, -1}, {0, 0.5f}, {0, 0}};
  const std::vector<size_t> experts = {2, 0, 1, 2, 0, 1};
  ExpertsScratch scratch(3, 12, 17, 3, 2, Activation::swiglu);
  Tensor<2> y = numbers(5, 2, 0, 3, 12);  // is written over
  run_choices(x, some.view(), experts, weights, scratch, y);
  const auto by = [&](size_t e) { return feed_forward(x, some.experts[e], Activation::swiglu); };
  const Tensor<2> zero = by(0), two = by(2);
  for (size_t c = 0; c < 12; ++c) {
    CHECK(std::abs(y(0, c) - (2 * two(0, c) - zero(0, c))) < 3 * bound);
    CHECK(std::abs(y(1, c) - 0.5f * two(1, c)) < bound);
    CHECK(y(2, c) == 0);
  }
  ExpertsScratch small(1, 12, 17, 3, 2, Activation::swiglu);
  REFUSES(
      run_choices(x, some.view(), experts, weights, small, y),
      "scratch: wanted max_rows ≥ 3, C = 12, E = 3, k = 2, got max_rows = 1, C = 12, E = 3, k = 2");
}

TEST_CASE("the row kernel allocates nothing, whatever is chosen") {
  Made some = made(5, 2);
  some.shared = network(1000, 12, 14), some.shared_gate = numbers(77, 1, 0, 1, 12);
  const Mixture mixture = some.view();
  const Tensor<2> x = numbers(9, 2, 0, 40, 12);
  ExpertsScratch scratch(20, 12, 17, 5, 2, Activation::swiglu);
  Tensor<2> y = empty(40, 12);
  size_t first = 0;
  if (allocations_counted)
    CHECK(allocates_nothing(20, [&] {
      const size_t T = first < 19 ? 1 : 20;
      experts_rows(ConstMatrix(x).rows_from(first, T), mixture, scratch,
                   Matrix(y).rows_from(first, T));
      ++first;
    }));
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

TEST_CASE("y may be x itself: a network beside the experts reads x and not what they wrote") {
  Made some = made(5, 2);
  some.shared = network(1000, 12, 14), some.shared_gate = numbers(77, 1, 0, 1, 12);
  Tensor<2> x = numbers(9, 2, 0, 7, 12);
  const Tensor<2> want = mixture_of_experts(x, some.view());
  ExpertsScratch scratch(7, 12, 17, 5, 2, Activation::swiglu);
  experts_rows(x, some.view(), scratch, x);
  CHECK(all_close(x, want, 2 * bound));
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
  refused(
      some,
      "scratch: wanted max_rows ≥ 4, C = 12, E = 3, k = 1, got max_rows = 4, C = 12, E = 3, k = 2");
  Tensor<2> broken = x;
  broken(1, 3) = broken(3, 0) = std::numeric_limits<float>::infinity();
  refused(made(3, 2), "scores of token 1: wanted finite numbers, got others", broken);
  ExpertsScratch scratch(4, 12, 17, 3, 2, Activation::swiglu);
  Tensor<2> narrow = zeros(4, 11), few = zeros(3, 12);
  REFUSES(experts_rows(x, made(3, 2).view(), scratch, narrow),
          "y: wanted shape [4, 12], got [4, 11]");
  REFUSES(experts_rows(x, made(3, 2).view(), scratch, few), "y: wanted shape [4, 12], got [3, 12]");
  const auto too_small = [&](ExpertsScratch small, const char* message) {
    Tensor<2> y = zeros(4, 12);
    REFUSES(experts_rows(x, made(3, 2).view(), small, y), message);
    CHECK(all_close(y, zeros(4, 12), 0));
  };
  too_small(
      ExpertsScratch(1, 12, 17, 3, 2, Activation::swiglu),
      "scratch: wanted max_rows ≥ 4, C = 12, E = 3, k = 2, got max_rows = 1, C = 12, E = 3, k = 2");
  too_small(
      ExpertsScratch(4, 13, 17, 3, 2, Activation::swiglu),
      "scratch: wanted max_rows ≥ 4, C = 12, E = 3, k = 2, got max_rows = 4, C = 13, E = 3, k = 2");
  too_small(
      ExpertsScratch(4, 12, 17, 5, 2, Activation::swiglu),
      "scratch: wanted max_rows ≥ 4, C = 12, E = 3, k = 2, got max_rows = 4, C = 12, E = 5, k = 2");
  too_small(ExpertsScratch(4, 12, 16, 3, 2, Activation::swiglu),
            "scratch.up: wanted at least [3, 17], got [4, 16]");
  REFUSES(ExpertsScratch(4, 0, 17, 3, 2, Activation::swiglu), "C: wanted at least 1, got 0");
  REFUSES(ExpertsScratch(4, 12, 0, 3, 2, Activation::swiglu), "F: wanted at least 1, got 0");
  REFUSES(ExpertsScratch(4, 12, 17, 3, 4, Activation::swiglu),
          "k, the experts of a token: wanted 1 to E = 3, got 4");
  REFUSES(ExpertsScratch(0, 12, 17, 3, 2, Activation::swiglu),
          "max_rows: wanted at least 1, got 0");
}

}  // namespace t2t::experts_test
