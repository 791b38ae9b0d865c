// What must be true of gates of each channel: by hand, in both forms, beside one gate for a head,
// and in the backward pass.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "13_training/differences.hpp"
#include "24_delta_rule/channels/channel_backward.hpp"
#include "24_delta_rule/delta_in_double.hpp"
#include "support/all_close.hpp"
#include "support/hashed_numbers.hpp"
#include "support/refuses.hpp"

namespace t2t::channels_test {

using std::size_t;

static constexpr double u = 0x1p-24;  // one rounding of a number up to 1

/// g between −2·decay and 0, of each channel; q of length about 1.
static ChannelTokens some_tokens(size_t T, size_t D, size_t Dv, float decay) {
  return {numbers(1, 2 / std::sqrt(float(D)), 0, T, D), numbers(2, 2, 0, T, D),
          numbers(3, 2, 0, T, Dv), numbers(4, 2 * decay, -decay, T, D)};
}

/// In float64: the outputs, the last state, and the largest Σ |k·v| that a state's element holds.
struct ChannelReference {
  Doubles out, state;
  double size = 0;
};
struct ChannelDoubles {
  Doubles q, k, v, g, state;

  ChannelDoubles(const ChannelTokens& x, const Tensor<2>& state)
      : q(x.q), k(x.k), v(x.v), g(x.g), state(state) {}
};
static ChannelReference in_double(const ChannelDoubles& x) {
  const size_t T = x.q.rows, D = x.q.cols, Dv = x.v.cols;
  ChannelReference r{Doubles(T, Dv), x.state};
  std::vector<double> sizes(D * Dv);
  for (size_t i = 0; i < sizes.size(); ++i) sizes[i] = std::abs(x.state.numbers[i]);
  for (size_t t = 0; t < T; ++t)
    for (size_t d = 0; d < D; ++d)
      for (size_t e = 0; e < Dv; ++e) {
        const double decay = std::exp(x.g(t, d)), added = x.k(t, d) * x.v(t, e);
        r.state(d, e) = decay * r.state(d, e) + added;
        sizes[d * Dv + e] = decay * sizes[d * Dv + e] + std::abs(added);
        r.size = std::max(r.size, sizes[d * Dv + e]);
        r.out(t, e) += x.q(t, d) * r.state(d, e);
      }
  return r;
}
/// A sum of T terms in a state, then one of D; the exponents of a chunk are differences of sums
/// too, whose two roundings, each of the largest sum, change a term by as much.
static double bound(size_t T, size_t D, size_t chunk, float decay, double size) {
  const double c = double(std::min(chunk, T));
  return (double(T + D) + 8 + 2 * c * 2 * decay) * u * (1 + size) * std::sqrt(double(D));
}

TEST_CASE("by hand: one channel halves, the other does not fade") {
  const float half = std::log(0.5f);
  const ChannelTokens tokens{
      {{1, 1}, {1, 0}}, {{1, 1}, {0, 1}}, {{2}, {3}}, {{half, 0}, {half, 0}}};
  for (const bool in_chunks : {false, true}) {
    Tensor<2> state = {{4}, {4}};
    const Tensor<2> o =
        in_chunks ? channel_chunks(tokens, 2, 1, state) : channel_recurrence(tokens, state);
    // S = (2 + 2, 4 + 2), which reads 10; then (2, 6 + 3), of which q reads the first.
    CHECK(all_close(o, Tensor<2>{{10}, {2}}, 64 * u));
    CHECK(all_close(state, Tensor<2>{{2}, {9}}, 64 * u));
  }
}

TEST_CASE("both forms are the recurrence in float64, at odd sizes and with strong gates") {
  struct Size {
    size_t T, D, Dv, chunk, block;
  };
  for (const auto& [T, D, Dv, chunk, block] : {Size{1, 3, 2, 4, 2},
                                               {5, 4, 3, 4, 4},
                                               {37, 7, 5, 8, 3},
                                               {131, 9, 6, 64, 16},
                                               {20, 2, 3, 7, 9}})
    for (const float decay : {0.05f, 1.0f, 3.0f}) {
      const ChannelTokens tokens = some_tokens(T, D, Dv, decay);
      const Tensor<2> start = numbers(6, 2, 0, D, Dv);
      const ChannelReference want = in_double({tokens, start});
      const double near = bound(T, D, chunk, decay, want.size);
      Tensor<2> state = start;
      CHECK(all_close(channel_recurrence(tokens, state), floats_in(want.out), near));
      CHECK(all_close(state, floats_in(want.state), near));
      state = start;
      CHECK(all_close(channel_chunks(tokens, chunk, block, state), floats_in(want.out), near));
      CHECK(all_close(state, floats_in(want.state), near));
    }
}

TEST_CASE("64 steps that fade by e^-2 overflow nothing, in one chunk of any blocks") {
  ChannelTokens tokens = some_tokens(64, 5, 4, 1);
  tokens.g.fill(-2);
  const Tensor<2> start = zeros(5, 4);
  const ChannelReference want = in_double({tokens, start});
  for (const size_t block : {1, 16, 64}) {
    Tensor<2> state = start;
    CHECK(all_close(channel_chunks(tokens, 64, block, state), floats_in(want.out),
                    bound(64, 5, 64, 2, want.size)));
  }
}

TEST_CASE("with one gate for all channels it is the chapter's gated linear attention") {
  const size_t T = 23, D = 5, Dv = 3;
  ChannelTokens tokens = some_tokens(T, D, Dv, 0.5f);
  Tensor<1> gates = numbers(7, 1, -0.5f, T);
  for (size_t t = 0; t < T; ++t)
    for (size_t d = 0; d < D; ++d) tokens.g(t, d) = gates(t);
  const DeltaTokens one{tokens.q, tokens.k, tokens.v, gates, zeros(T)};
  Tensor<2> state = numbers(6, 2, 0, D, Dv), other = state;
  const double near = bound(T, D, 1, 0.5f, in_double({tokens, state}).size);
  CHECK(all_close(channel_recurrence(tokens, state), delta_recurrence(one, StateRule::add, other),
                  near));
  CHECK(all_close(state, other, near));
}

TEST_CASE("a text in two calls gets what it gets in one") {
  const size_t T = 20;
  const ChannelTokens all = some_tokens(T, 4, 3, 0.5f);
  Tensor<2> state = numbers(6, 2, 0, 4, 3);
  const ChannelReference want = in_double({all, state});
  const double near = bound(T, 4, 8, 0.5f, want.size);
  for (const auto& [from, count] : {std::pair<size_t, size_t>{0, 13}, {13, 7}}) {
    const ChannelTokens part{rows_of(all.q, from, count), rows_of(all.k, from, count),
                             rows_of(all.v, from, count), rows_of(all.g, from, count)};
    CHECK(all_close(channel_chunks(part, 8, 3, state), rows_of(floats_in(want.out), from, count),
                    near));
  }
  CHECK(all_close(state, floats_in(want.state), near));
}

TEST_CASE("each gradient is that of finite differences in float64, with a last state's gradient") {
  for (const float decay : {0.1f, 1.0f}) {
    const size_t T = 13, D = 4, Dv = 3;
    const ChannelTokens tokens = some_tokens(T, D, Dv, decay);
    const Tensor<2> start = numbers(6, 2, 0, D, Dv), dout = numbers(8, 2, 0, T, Dv),
                    dlast = numbers(9, 2, 0, D, Dv);
    const ChannelGradients got = channel_backward(tokens, start, dout, dlast);
    ChannelDoubles in(tokens, start);
    const auto equal = [&](const Tensor<2>& gradient, Doubles& of) {
      const Tensor<2> want = by_differences(of, [&] {
        const ChannelReference r = in_double(in);
        return dot(dout, r.out) + dot(dlast, r.state);
      });
      // Elements of both scans are sums of up to 3·T terms below 8, and those of g sums of 2·T of
      // such times q or k.
      CHECK(all_close(gradient, want, double(3 * T) * 16 * 2 * double(T) * u));
    };
    equal(got.tokens.q, in.q);
    equal(got.tokens.k, in.k);
    equal(got.tokens.v, in.v);
    equal(got.tokens.g, in.g);
    equal(got.state, in.state);
  }
}

TEST_CASE("by hand: the gradients of one token, and a gate that only the state before it feels") {
  // S = ½·4 + 1·2 = 4, o = 4·3. do = 1: dq = 4, dS = 3, dk = 3·2, dv = 3·1, dg = 3·(½·4), and the
  // first state gets 3·½.
  const ChannelTokens tokens{{{3}}, {{1}}, {{2}}, {{std::log(0.5f)}}};
  const ChannelGradients d = channel_backward(tokens, {{4}}, {{1}}, {{0}});
  CHECK(all_close(d.tokens.q, Tensor<2>{{4}}, 16 * u));
  CHECK(all_close(d.tokens.k, Tensor<2>{{6}}, 16 * u));
  CHECK(all_close(d.tokens.v, Tensor<2>{{3}}, 16 * u));
  CHECK(all_close(d.tokens.g, Tensor<2>{{6}}, 64 * u));
  CHECK(all_close(d.state, Tensor<2>{{1.5f}}, 16 * u));
}

TEST_CASE("shapes and gates that can't be are refused by name, and the state stays as it was") {
  ChannelTokens tokens = some_tokens(3, 2, 2, 0.5f);
  Tensor<2> state = zeros(2, 2);
  REFUSES(channel_chunks(tokens, 0, 1, state),
          "chunk, the tokens of a chunk: wanted at least 1, got 0");
  REFUSES(channel_chunks(tokens, 1, 0, state),
          "block, the tokens of a block: wanted at least 1, got 0");
  REFUSES(channel_backward(tokens, state, zeros(2, 2), zeros(2, 2)),
          "dout: wanted shape [3, 2], got [2, 2]");
  tokens.g(1, 0) = 0.5f;
  REFUSES(channel_recurrence(tokens, state),
          "g of token 1, channel 0: wanted a finite number of at most 0, got 0.5");
  tokens.g(1, 0) = -INFINITY;
  REFUSES(channel_chunks(tokens, 2, 1, state),
          "g of token 1, channel 0: wanted a finite number of at most 0, got -inf");
  CHECK(all_close(state, zeros(2, 2), 0));
  tokens.g = zeros(3, 1);
  REFUSES(channel_recurrence(tokens, state), "g: wanted shape [3, 2], got [3, 1]");
}

}  // namespace t2t::channels_test
