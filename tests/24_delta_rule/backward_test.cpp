// What must be true of the delta rule's gradients: differences in float64, a case by hand, and two
// forms.
#include <doctest/doctest.h>

#include <array>
#include <cmath>

#include "13_training/differences.hpp"
#include "24_delta_rule/backward/chunks_backward.hpp"
#include "24_delta_rule/delta_in_double.hpp"
#include "support/all_close.hpp"
#include "support/refuses.hpp"

namespace t2t::delta_backward_test {

using std::size_t;

static double largest_of(const Tensor<2>& x) {
  double largest = 0;
  for (const float number : x) largest = std::max(largest, double(std::abs(number)));
  return largest;
}

/// A gradient is a sum over later tokens and the widths; its error is that of T steps, each of
/// which makes no error longer, as in the forward pass.
static double near(const DeltaTokens& tokens, const Tensor<2>& want) {
  return 16 * rounding(tokens.T() * (tokens.D() + tokens.Dv()), 1 + largest_of(want));
}

TEST_CASE("by hand: the gradients of the page's two tokens, for gradients of 1") {
  const float half = std::log(0.5f);
  const DeltaTokens tokens{
      {{1, 0}, {0, 1}}, {{1, 0}, {0.6f, 0.8f}}, {{2}, {1}}, {half, half}, {1, 0.5f}};
  for (const size_t chunk : {0, 1, 2}) {  // 0: the recurrence in reverse
    CAPTURE(chunk);
    const Tensor<2> dout = {{1}, {1}};
    const DeltaGradients gradients =
        chunk == 0 ? delta_backward(tokens, StateRule::correct, zeros(2, 1), dout, zeros(2, 1))
                   : delta_chunks_backward(tokens, StateRule::correct, chunk, zeros(2, 1), dout,
                                           zeros(2, 1));
    const DeltaTokens& d = gradients.tokens;
    const double close = 32 * 0x1p-24;
    CHECK(all_close(d.q, Tensor<2>{{2, 0}, {1.12f, 0.16f}}, close));
    CHECK(all_close(d.k, Tensor<2>{{1.76f, 0.68f}, {-0.4f, 0.2f}}, close));
    CHECK(all_close(d.v, Tensor<2>{{0.88f}, {0.4f}}, close));
    CHECK(all_close(as_matrix(d.g), Tensor<2>{{0, -0.24f}}, close));
    CHECK(all_close(as_matrix(d.beta), Tensor<2>{{1.76f, 0.32f}}, close));
  }
}

TEST_CASE("each gradient is that of finite differences in float64, in both forms and rules") {
  for (const auto& [T, D, Dv, chunk] :
       {std::array<size_t, 4>{1, 3, 2, 4}, {7, 4, 3, 3}, {9, 3, 5, 4}})
    for (const StateRule rule : {StateRule::add, StateRule::correct}) {
      const size_t tokens_in_all = T;
      CAPTURE(tokens_in_all);
      const DeltaTokens tokens = made_tokens(T, D, Dv, 0.3f);
      const Tensor<2> state = made_state(D, Dv), dout = numbers(7, 2, 0, T, Dv),
                      dstate = numbers(8, 2, 0, D, Dv);
      DeltaDoubles x(tokens, state);
      const auto loss = [&] {
        const DeltaReference got = recurrence_in_double(x, rule);
        return dot(dout, got.out) + dot(dstate, got.state);
      };
      const DeltaGradients steps = delta_backward(tokens, rule, state, dout, dstate),
                           chunks = delta_chunks_backward(tokens, rule, chunk, state, dout, dstate);
      const auto check = [&](const DeltaGradients& got) {
        const auto equal = [&](const Tensor<2>& gradient, Doubles& of) {
          const Tensor<2> want = by_differences(of, loss);
          CHECK(all_close(gradient, want, near(tokens, want)));
        };
        equal(got.tokens.q, x.q);
        equal(got.tokens.k, x.k);
        equal(got.tokens.v, x.v);
        equal(as_matrix(got.tokens.g), x.g);
        equal(as_matrix(got.tokens.beta), x.beta);
        equal(got.state, x.state);
      };
      check(steps);
      check(chunks);
    }
}

TEST_CASE("the two forms of the backward pass agree at odd sizes") {
  for (const auto& [T, D, Dv, chunk] : {std::array<size_t, 4>{37, 7, 5, 8}, {70, 16, 17, 32}})
    for (const StateRule rule : {StateRule::add, StateRule::correct}) {
      const size_t tokens_in_all = T;
      CAPTURE(tokens_in_all);
      const DeltaTokens tokens = made_tokens(T, D, Dv, 0.1f);
      const Tensor<2> state = made_state(D, Dv), dout = numbers(7, 2, 0, T, Dv),
                      dstate = numbers(8, 2, 0, D, Dv);
      const DeltaGradients a = delta_backward(tokens, rule, state, dout, dstate),
                           b = delta_chunks_backward(tokens, rule, chunk, state, dout, dstate);
      const auto equal = [&](const Tensor<2>& one, const Tensor<2>& other) {
        CHECK(all_close(other, one, near(tokens, one)));
      };
      equal(a.tokens.q, b.tokens.q);
      equal(a.tokens.k, b.tokens.k);
      equal(a.tokens.v, b.tokens.v);
      equal(as_matrix(a.tokens.g), as_matrix(b.tokens.g));
      equal(as_matrix(a.tokens.beta), as_matrix(b.tokens.beta));
      equal(a.state, b.state);
    }
}

TEST_CASE("gradients of other shapes are refused by name") {
  const DeltaTokens tokens = made_tokens(4, 3, 2);
  const Tensor<2> state = made_state(3, 2);
  REFUSES(delta_backward(tokens, StateRule::add, state, zeros(3, 2), zeros(3, 2)),
          "dout: wanted shape [4, 2], got [3, 2]");
  REFUSES(delta_chunks_backward(tokens, StateRule::add, 2, state, zeros(4, 2), zeros(3, 1)),
          "dstate: wanted shape [3, 2], got [3, 1]");
  REFUSES(delta_chunks_backward(tokens, StateRule::add, 0, state, zeros(4, 2), zeros(3, 2)),
          "chunk, the tokens of a chunk: wanted at least 1, got 0");
}

}  // namespace t2t::delta_backward_test
