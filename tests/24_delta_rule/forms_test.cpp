// What must be true of the recurrence and of its form in chunks.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "24_delta_rule/chunks/chunk_solve.hpp"
#include "24_delta_rule/chunks/delta_chunks.hpp"
#include "24_delta_rule/delta_costs.hpp"
#include "24_delta_rule/delta_in_double.hpp"
#include "24_delta_rule/linear/normalized_linear.hpp"
#include "linalg.hpp"
#include "support/all_close.hpp"
#include "support/refuses.hpp"

namespace t2t::delta_forms_test {

using std::size_t;

static constexpr double u = 0x1p-24;  // one rounding of a number up to 1

/// The page's two tokens: the state halves before each, values 2 and 1, the second key (0.6, 0.8).
static DeltaTokens two_tokens() {
  const float half = std::log(0.5f);
  return {{{1, 0}, {0, 1}}, {{1, 0}, {0.6f, 0.8f}}, {{2}, {1}}, {half, half}, {1, 0.5f}};
}

TEST_CASE("by hand: two tokens write 2 and 0.2, and read 2 and 0.16") {
  const DeltaTokens tokens = two_tokens();
  for (const size_t chunk : {0, 1, 2, 5}) {  // 0: step by step
    CAPTURE(chunk);
    Tensor<2> state = zeros(2, 1);
    const Tensor<2> o = chunk == 0 ? delta_recurrence(tokens, StateRule::correct, state)
                                   : delta_chunks(tokens, StateRule::correct, chunk, state);
    CHECK(all_close(o, Tensor<2>{{2}, {0.16f}}, 16 * u));
    CHECK(all_close(state, Tensor<2>{{1.12f}, {0.16f}}, 16 * u));
  }
}

TEST_CASE("by hand: gated linear attention writes all of the second value, and reads 0.8") {
  const DeltaTokens tokens = two_tokens();
  for (const size_t chunk : {0, 1, 2}) {
    CAPTURE(chunk);
    Tensor<2> state = zeros(2, 1);
    const Tensor<2> o = chunk == 0 ? delta_recurrence(tokens, StateRule::add, state)
                                   : delta_chunks(tokens, StateRule::add, chunk, state);
    CHECK(all_close(o, Tensor<2>{{2}, {0.8f}}, 16 * u));
    CHECK(all_close(state, Tensor<2>{{1.6f}, {0.8f}}, 16 * u));
  }
}

TEST_CASE("by hand: a step leaves what it wrote in u") {
  Tensor<2> state = {{2}, {0}};
  Tensor<1> wrote = {9}, out = {9};
  const Tensor<1> q = {0, 1}, k = {0.6f, 0.8f}, v = {1};
  delta_step(row(q), row(k), row(v), std::log(0.5f), 0.5f, StateRule::correct, state, row(wrote),
             row(out));
  CHECK(wrote(0) == doctest::Approx(0.2));
  CHECK(out(0) == doctest::Approx(0.16));
}

TEST_CASE("by hand: a triangular solve, and its transpose") {
  const float ignored = 7;  // neither the diagonal nor what lies above it is read
  const Tensor<2> a = {{ignored, ignored, ignored}, {0.5f, ignored, ignored}, {1, 2, ignored}};
  CHECK(all_close(solve_lower(a, {{4, 0}, {3, 1}, {10, 2}}), Tensor<2>{{4, 0}, {1, 1}, {4, 0}}, 0));
  // u_2 = 10, u_1 = 3 − 2·10, u_0 = 4 − ½·(−17) − 1·10.
  CHECK(all_close(solve_lower_transposed(a, {{4}, {3}, {10}}), Tensor<2>{{2.5f}, {-17}, {10}}, 0));
}

TEST_CASE("by hand: decays are exponentials of differences of sums, and 0 above the diagonal") {
  const Tensor<1> g = {-1, -2, -3};
  const Tensor<1> sums = running_sums(row(g));
  CHECK(all_close(as_matrix(sums), Tensor<2>{{-1, -3, -6}}, 0));
  const float e2 = std::exp(-2.f), e3 = std::exp(-3.f), e5 = std::exp(-5.f);
  CHECK(all_close(chunk_decays(sums), Tensor<2>{{1, 0, 0}, {e2, 1, 0}, {e5, e3, 1}}, 4 * u));
}

TEST_CASE(
    "steps and chunks are within the derived bound of float64, at odd sizes, state included") {
  for (const auto& [T, D, Dv, chunk] :
       {std::array<size_t, 4>{1, 3, 2, 4}, {5, 4, 3, 4}, {37, 7, 5, 8}, {131, 33, 17, 64}})
    for (const StateRule rule : {StateRule::add, StateRule::correct})
      for (const float decay : {0.f, 0.1f, 1.f}) {
        const size_t tokens_of_chunk = chunk, tokens_in_all = T;
        CAPTURE(tokens_in_all);
        CAPTURE(tokens_of_chunk);
        CAPTURE(decay);
        const DeltaTokens tokens = made_tokens(T, D, Dv, decay);
        Tensor<2> state = made_state(D, Dv), other = state;
        const DeltaReference want = recurrence_in_double(DeltaDoubles(tokens, state), rule);
        const double near = delta_bound(tokens, 1, want.size),
                     near_chunks = delta_bound(tokens, chunk, want.size);
        const Tensor<2> steps = delta_recurrence(tokens, rule, state),
                        chunks = delta_chunks(tokens, rule, chunk, other);
        CHECK(all_close(steps, floats_in(want.out), near));
        CHECK(all_close(state, floats_in(want.state), near));
        CHECK(all_close(chunks, floats_in(want.out), near_chunks));
        CHECK(all_close(other, floats_in(want.state), near_chunks));
        CHECK(near_chunks < 0.03);  // so that it is worth something
      }
}

TEST_CASE("a text in two calls gets what it gets in one, in both forms, wherever it is cut") {
  const size_t T = 21, D = 6, Dv = 5;
  const DeltaTokens all = made_tokens(T, D, Dv);
  const auto part = [&](size_t first, size_t count) {
    return DeltaTokens{rows_of(all.q, first, count), rows_of(all.k, first, count),
                       rows_of(all.v, first, count),
                       xt::view(all.g, xt::range(first, first + count)),
                       xt::view(all.beta, xt::range(first, first + count))};
  };
  for (const StateRule rule : {StateRule::add, StateRule::correct}) {
    const DeltaReference want = recurrence_in_double(DeltaDoubles(all, made_state(D, Dv)), rule);
    for (const size_t cut : {1, 8, 13, 20})
      for (const size_t chunk : {0, 8}) {
        CAPTURE(cut);
        CAPTURE(chunk);
        Tensor<2> state = made_state(D, Dv), got = empty(T, Dv);
        for (const auto& [first, count] : {std::pair{size_t(0), cut}, {cut, T - cut}})
          xt::view(got, xt::range(first, first + count), xt::all()) =
              chunk == 0 ? delta_recurrence(part(first, count), rule, state)
                         : delta_chunks(part(first, count), rule, chunk, state);
        CHECK(all_close(got, floats_in(want.out), delta_bound(all, 8, want.size)));
        CHECK(all_close(state, floats_in(want.state), delta_bound(all, 8, want.size)));
      }
  }
}

TEST_CASE("with β = 1 and no decay, a key that was just written is read exactly") {
  const size_t T = 12, D = 5, Dv = 4;
  DeltaTokens tokens = made_tokens(T, D, Dv);
  tokens.q = tokens.k, tokens.g = zeros(T), tokens.beta = xt::ones<float>({T});
  Tensor<2> state = made_state(D, Dv);
  const double near = delta_bound(tokens, 1, 4);
  CHECK(all_close(delta_recurrence(tokens, StateRule::correct, state), tokens.v, near));
}

TEST_CASE("strong decays stay finite in chunks, and forget all that came before") {
  const size_t T = 40, D = 4, Dv = 3;
  for (const float strong : {-2.f, -30.f, -100.f})
    for (const StateRule rule : {StateRule::add, StateRule::correct}) {
      CAPTURE(strong);
      DeltaTokens tokens = made_tokens(T, D, Dv);
      tokens.g = xt::ones<float>({T}) * strong;
      Tensor<2> state = made_state(D, Dv);
      const DeltaReference want = recurrence_in_double(DeltaDoubles(tokens, state), rule);
      // Differences of sums of up to 32·100 are off by roundings of these; what such a decay leaves
      // is below e^−2, and e^−30 is nothing.
      const Tensor<2> got = delta_chunks(tokens, rule, 32, state);
      CHECK(all_close(got, floats_in(want.out), delta_bound(tokens, 32, want.size)));
      CHECK(all_close(state, floats_in(want.state), delta_bound(tokens, 32, want.size)));
    }
}

TEST_CASE("by hand: normalized linear attention weighs φ(q)·φ(k), and its weights add up to 1") {
  // φ(0) = 1 and φ(1) = 2. The first query's weights are 1; the second's are 1 and 2 thirds.
  NormalizedState state = normalized_state(1, 2);
  const Tensor<2> out = normalized_linear({{0}, {1}}, {{0}, {1}}, {{3, 1}, {6, 1}}, state);
  CHECK(all_close(out, Tensor<2>{{3, 1}, {5, 1}}, 8 * u));
  CHECK(all_close(state.values, Tensor<2>{{15, 3}}, 8 * u));

  // At odd sizes, with values of 1 in the last channel, and in two calls.
  const size_t T = 13, D = 5, Dv = 4;
  const Tensor<2> q = numbers(1, 4, 0, T, D), k = numbers(2, 4, 0, T, D);
  Tensor<2> v = numbers(3, 2, 0, T, Dv), want = zeros(T, Dv);
  for (size_t t = 0; t < T; ++t) v(t, Dv - 1) = 1;
  const auto phi = [](double x) { return x > 0 ? x + 1 : std::exp(x); };
  for (size_t t = 0; t < T; ++t) {
    double sum = 0;
    std::vector<double> mean(Dv);
    for (size_t s = 0; s <= t; ++s) {
      double weight = 0;
      for (size_t d = 0; d < D; ++d) weight += phi(q(t, d)) * phi(k(s, d));
      sum += weight;
      for (size_t e = 0; e < Dv; ++e) mean[e] += weight * v(s, e);
    }
    for (size_t e = 0; e < Dv; ++e) want(t, e) = float(mean[e] / sum);
  }
  NormalizedState whole = normalized_state(D, Dv);
  // Both sums have T·D terms above 0, and values are below 1.
  CHECK(all_close(normalized_linear(q, k, v, whole), want, 2 * double(T * D + 8) * u));
  NormalizedState parts = normalized_state(D, Dv);
  normalized_linear(rows_of(q, 0, 6), rows_of(k, 0, 6), rows_of(v, 0, 6), parts);
  const Tensor<2> rest =
      normalized_linear(rows_of(q, 6, 7), rows_of(k, 6, 7), rows_of(v, 6, 7), parts);
  CHECK(all_close(rest, rows_of(want, 6, 7), 2 * double(T * D + 8) * u));
}

TEST_CASE("unit rows have length 1, and a row of zeros stays 0") {
  CHECK(all_close(unit_rows(Tensor<2>{{3, 4}, {0, 0}}, 1e-12f), Tensor<2>{{0.6f, 0.8f}, {0, 0}},
                  4 * u));
  // eps stands under the root: √(9e-6 + 16e-6 + 11e-6) = 0.006.
  CHECK(
      all_close(unit_rows(Tensor<2>{{3e-3f, 4e-3f}}, 11e-6f), Tensor<2>{{0.5f, 2 / 3.f}}, 16 * u));
  REFUSES(unit_rows(zeros(1, 2), 0), "eps: wanted a number above 0, got 0");
}

TEST_CASE("by hand: what states, caches and steps cost") {
  const HybridSizes sizes;
  CHECK(state_bytes(sizes, 4) == 36ul * (32 * 128 * 128 + 3 * 8192) * 4);
  CHECK(cache_bytes(sizes, 4, 1) == 24576);
  CHECK(cache_bytes(sizes, 0, 1000) == 0);
  CHECK(step_operations(64, 64) == 28672);
  CHECK(chunk_operations(64, 64, 64) == 53248);
  REFUSES(state_bytes(sizes, 5),
          "every, the layers to one that attends: wanted 0 or a divisor of 48, got 5");
}

TEST_CASE("what can't be right is refused by name and token, and the state stays as it was") {
  const DeltaTokens right = made_tokens(4, 3, 2);
  Tensor<2> state = made_state(3, 2);
  const Tensor<2> before = state;
  const auto refused = [&](const DeltaTokens& tokens, const char* says) {
    REFUSES(delta_recurrence(tokens, StateRule::correct, state), says);
    REFUSES(delta_chunks(tokens, StateRule::correct, 2, state), says);
  };
  DeltaTokens wrong = right;
  wrong.g(2) = 0.5f;
  refused(wrong, "g of token 2: wanted at most 0, got 0.5");
  wrong.g(2) = std::numeric_limits<float>::quiet_NaN();
  refused(wrong, "g of token 2: wanted at most 0, got nan");
  wrong = right, wrong.beta(1) = 1.5f;
  refused(wrong, "beta of token 1: wanted from 0 to 1, got 1.5");
  wrong.beta(1) = -0.5f;
  refused(wrong, "beta of token 1: wanted from 0 to 1, got -0.5");
  wrong = right, wrong.beta(3) = 1;
  for (float& value : row(wrong.k, 3)) value = 2;
  refused(wrong, "beta·|k|² of token 3: wanted at most 2, got 12");
  wrong.beta(3) = 0.125f;  // 1.5: a long key may be written with a small beta
  Tensor<2> changed = state;
  CHECK_NOTHROW(delta_recurrence(wrong, StateRule::correct, changed));
  wrong = right, wrong.k = zeros(4, 2);
  refused(wrong, "k: wanted shape [4, 3], got [4, 2]");
  wrong = right, wrong.v = zeros(3, 2);
  refused(wrong, "v: wanted shape [4, 2], got [3, 2]");
  wrong = right, wrong.g = zeros(3);
  refused(wrong, "g: wanted shape [4], got [3]");
  wrong = right, wrong.beta = zeros(3);
  refused(wrong, "beta: wanted shape [4], got [3]");
  CHECK(all_close(state, before, 0));
  REFUSES(delta_chunks(right, StateRule::correct, 0, state),
          "chunk, the tokens of a chunk: wanted at least 1, got 0");
  Tensor<2> other = zeros(3, 3);
  REFUSES(delta_recurrence(right, StateRule::add, other), "state: wanted shape [3, 2], got [3, 3]");
  wrong = right, wrong.beta = zeros(0);  // which linear attention does not read
  CHECK_NOTHROW(delta_recurrence(wrong, StateRule::add, state));
  REFUSES(solve_lower(zeros(3, 2), zeros(3, 1)), "a: wanted shape [3, 3], got [3, 2]");
  REFUSES(solve_lower_transposed(zeros(3, 2), zeros(3, 1)), "a: wanted shape [3, 3], got [3, 2]");
}

}  // namespace t2t::delta_forms_test
