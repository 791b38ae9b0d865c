#include "24_delta_rule/channels/channel_gates.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "linalg.hpp"
#include "shapes.hpp"

namespace t2t {

void expect_channels(const ChannelTokens& tokens, ConstMatrix state) {
  const std::size_t T = tokens.T(), D = tokens.D(), Dv = tokens.Dv();
  expect(D >= 1, "D, the width of keys", "at least 1", D);
  expect(Dv >= 1, "Dv, the width of values", "at least 1", Dv);
  expect_shape("k", tokens.k, {T, D});
  expect_shape("v", tokens.v, {T, Dv});
  expect_shape("g", tokens.g, {T, D});
  expect_shape("state", state, {D, Dv});
  for (std::size_t t = 0; t < T; ++t)
    for (std::size_t d = 0; d < D; ++d)
      if (!(tokens.g(t, d) <= 0 && std::isfinite(tokens.g(t, d))))
        refuse(fmt::format("g of token {}, channel {}", t, d), "a finite number of at most 0",
               tokens.g(t, d));
}

Tensor<2> channel_recurrence(const ChannelTokens& tokens, Tensor<2>& state) {
  expect_channels(tokens, state);
  Tensor<2> out = xt::zeros<float>({tokens.T(), tokens.Dv()});  // [T, Dv]
  for (std::size_t t = 0; t < tokens.T(); ++t)
    for (std::size_t d = 0; d < tokens.D(); ++d) {
      const float decay = std::exp(tokens.g(t, d)), k = tokens.k(t, d), q = tokens.q(t, d);
      for (std::size_t e = 0; e < tokens.Dv(); ++e) {
        state(d, e) = decay * state(d, e) + k * tokens.v(t, e);
        out(t, e) += q * state(d, e);
      }
    }
  return out;
}

/// The running sums of g over a chunk's tokens, channel by channel: [c, D].
static Tensor<2> channel_sums(ConstMatrix g) {
  Tensor<2> sums = empty(g.rows, g.cols);
  for (std::size_t d = 0; d < g.cols; ++d) {
    double sum = 0;
    for (std::size_t i = 0; i < g.rows; ++i) sums(i, d) = float(sum += g.row(i)[d]);
  }
  return sums;
}

// [chunk]
/// x, each row faded from a row of sums to its own, or from its own to one. No exponent is above 0.
static Tensor<2> faded_from(ConstMatrix x, ConstMatrix sums, ConstRow start) {
  Tensor<2> faded = copy_of(x);
  for (std::size_t i = 0; i < x.rows; ++i)
    for (std::size_t d = 0; d < x.cols; ++d) faded(i, d) *= std::exp(sums.row(i)[d] - start[d]);
  return faded;
}
static Tensor<2> faded_until(ConstMatrix x, ConstMatrix sums, ConstRow end) {
  Tensor<2> faded = copy_of(x);
  for (std::size_t i = 0; i < x.rows; ++i)
    for (std::size_t d = 0; d < x.cols; ++d) faded(i, d) *= std::exp(end[d] - sums.row(i)[d]);
  return faded;
}

/// P, block by block: [c, c].
static Tensor<2> faded_scores(ConstMatrix q, ConstMatrix k, const Tensor<2>& sums,
                              std::size_t block) {
  const std::size_t c = q.rows, D = q.cols;
  const ConstMatrix all = sums;
  Tensor<2> p = xt::zeros<float>({c, c});  // [c, c]
  for (std::size_t first = 0; first < c; first += block) {
    const std::size_t count = std::min(block, c - first);
    // The keys of earlier blocks, by way of the last token before this block.
    if (first > 0) {
      const ConstRow between = row(sums, first - 1);  // [D]
      matmul_bt(faded_from(q.rows_from(first, count), all.rows_from(first, count), between),
                faded_until(k.rows_from(0, first), all.rows_from(0, first), between),
                Matrix(p).rows_from(first, count).cols_from(0, first));
    }
    // Its own keys.
    for (std::size_t i = first; i < first + count; ++i)
      for (std::size_t j = first; j <= i; ++j)
        for (std::size_t d = 0; d < D; ++d)
          p(i, j) += q.row(i)[d] * k.row(j)[d] * std::exp(sums(i, d) - sums(j, d));
  }
  return p;
}

Tensor<2> channel_chunks(const ChannelTokens& tokens, std::size_t chunk, std::size_t block,
                         Tensor<2>& state) {
  expect(chunk >= 1, "chunk, the tokens of a chunk", "at least 1", chunk);
  expect(block >= 1, "block, the tokens of a block", "at least 1", block);
  expect_channels(tokens, state);
  const Tensor<1> zero = xt::zeros<float>({tokens.D()});  // [D]
  Tensor<2> out = empty(tokens.T(), tokens.Dv());         // [T, Dv]
  for (std::size_t t = 0; t < tokens.T(); t += chunk) {
    const std::size_t count = std::min(chunk, tokens.T() - t);
    const ConstMatrix q = ConstMatrix(tokens.q).rows_from(t, count),
                      k = ConstMatrix(tokens.k).rows_from(t, count),
                      v = ConstMatrix(tokens.v).rows_from(t, count);
    const Tensor<2> sums = channel_sums(ConstMatrix(tokens.g).rows_from(t, count));  // [c, D]
    const Matrix o = Matrix(out).rows_from(t, count);
    matmul(faded_from(q, sums, row(zero)), state, o);
    add_matmul(faded_scores(q, k, sums, block), v, o);

    const ConstRow last = row(sums, count - 1);  // [D]
    for (std::size_t d = 0; d < tokens.D(); ++d)
      for (float& s : row(state, d)) s *= std::exp(last[d]);
    add_matmul_at(faded_until(k, sums, last), v, state);
  }
  return out;
}
// [/chunk]

}  // namespace t2t
