#include "06_gqa/fast/decode_attention.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "04_causal_attention/fast/score_rule.hpp"
#include "04_causal_attention/fast/softmax_rows.hpp"
#include "lanes.hpp"

namespace t2t {

static constexpr std::size_t W = Lanes::size;  // floats in a register

/// Calls f(n, count) for heads n … n + count − 1 of N, up to four at once. The compiler knows
/// count, so that f can keep its sums for each head in registers.
template <class F>
static void for_heads(std::size_t N, F f) {
  std::size_t n = 0;
  for (; n + 4 <= N; n += 4) f(n, std::integral_constant<std::size_t, 4>());
  if (N - n == 3) f(n, std::integral_constant<std::size_t, 3>());
  if (N - n == 2) f(n, std::integral_constant<std::size_t, 2>());
  if (N - n == 1) f(n, std::integral_constant<std::size_t, 1>());
}

/// The scores of up to W keys with `heads` queries. Keys are read two at a time, in order of
/// memory. A key's products with a query are first summed into W lanes; then the lanes of all keys
/// are summed together. If there are fewer than W keys, the last is read again, for scores that are
/// not stored.
template <std::size_t heads>
static void score_keys(ConstMatrix q, ConstMatrix k, Matrix scores) {
  const std::size_t D = q.cols, whole = D - D % W, last = k.rows - 1;
  Lanes products[heads][W];
  for (std::size_t s = 0; s < W; s += 2) {
    const float *first = k.row(std::min(s, last)).data(),
                *second = k.row(std::min(s + 1, last)).data();
    Lanes sums[heads][2];
    for (auto& pair : sums) pair[0] = pair[1] = Lanes(0);
    for (std::size_t d = 0; d < whole; d += W) {
      const Lanes a = Lanes::load_unaligned(first + d), b = Lanes::load_unaligned(second + d);
      for (std::size_t n = 0; n < heads; ++n) {
        const Lanes query = Lanes::load_unaligned(q.data + n * q.stride + d);
        sums[n][0] = xsimd::fma(query, a, sums[n][0]);
        sums[n][1] = xsimd::fma(query, b, sums[n][1]);
      }
    }
    for (std::size_t n = 0; n < heads; ++n)
      products[n][s] = sums[n][0], products[n][s + 1] = sums[n][1];
  }
  if (whole < D)
    for (std::size_t n = 0; n < heads; ++n) {
      const Lanes query = load_part(q.row(n).data() + whole, D - whole, 0);
      for (std::size_t s = 0; s < k.rows; ++s)
        products[n][s] += query * load_part(k.row(s).data() + whole, D - whole, 0);
    }

  for (std::size_t n = 0; n < heads; ++n) {
    const Lanes row = add_lanes_of_each(products[n]);  // [W] scores
    if (k.rows == W)
      row.store_unaligned(scores.row(n).data());
    else
      store_part(row, scores.row(n).data(), k.rows);
  }
}

/// out += weights·v for `heads` heads, in the W·R channels from channel d on. Each value is read
/// once, and the sums stay in registers until the end of the piece.
template <std::size_t heads, std::size_t R>
static void mix_columns(ConstMatrix weights, ConstMatrix v, std::size_t d, Matrix out) {
  Lanes sums[heads][R];
  for (std::size_t n = 0; n < heads; ++n)
    for (std::size_t r = 0; r < R; ++r)
      sums[n][r] = Lanes::load_unaligned(out.row(n).data() + d + r * W);
  for (std::size_t s = 0; s < v.rows; ++s)
    for (std::size_t r = 0; r < R; ++r) {
      const Lanes value = Lanes::load_unaligned(v.row(s).data() + d + r * W);
      for (std::size_t n = 0; n < heads; ++n)
        sums[n][r] = xsimd::fma(Lanes(weights.row(n)[s]), value, sums[n][r]);
    }
  for (std::size_t n = 0; n < heads; ++n)
    for (std::size_t r = 0; r < R; ++r) sums[n][r].store_unaligned(out.row(n).data() + d + r * W);
}

/// out += weights·v in all channels: four registers at a time, then one, then a part of one.
template <std::size_t heads>
static void mix_values(ConstMatrix weights, ConstMatrix v, Matrix out) {
  std::size_t d = 0;
  for (; d + 4 * W <= v.cols; d += 4 * W) mix_columns<heads, 4>(weights, v, d, out);
  for (; d + W <= v.cols; d += W) mix_columns<heads, 1>(weights, v, d, out);
  if (d == v.cols) return;
  for (std::size_t n = 0; n < heads; ++n) {
    Lanes sum = load_part(out.row(n).data() + d, v.cols - d, 0);
    for (std::size_t s = 0; s < v.rows; ++s)
      sum =
          xsimd::fma(Lanes(weights.row(n)[s]), load_part(v.row(s).data() + d, v.cols - d, 0), sum);
    store_part(sum, out.row(n).data() + d, v.cols - d);
  }
}

std::size_t stretch_count(std::size_t S) { return (S + stretch_keys - 1) / stretch_keys; }

/// Calls f(piece, first) for each piece, first being the number of keys before it.
template <class F>
static void for_pieces(std::span<const KeyPiece> pieces, F f) {
  std::size_t first = 0;
  for (const KeyPiece& piece : pieces) {
    f(piece, first);
    first += piece.k.rows;
  }
}

void attend_stretch(ConstMatrix q, std::span<const KeyPiece> pieces, Matrix scores, Matrix out,
                    Matrix log_sums, const ScoreRule& rule) {
  // Scores of W keys at a time, for up to four heads at once.
  const std::size_t N = q.rows;
  for_pieces(pieces, [&](const KeyPiece& piece, std::size_t first) {
    for (std::size_t s = 0; s < piece.k.rows; s += W) {
      const std::size_t count = std::min(W, piece.k.rows - s);
      for_heads(N, [&](std::size_t n, auto heads) {
        score_keys<heads>(q.rows_from(n, heads), piece.k.rows_from(s, count),
                          scores.rows_from(n, heads).cols_from(first + s, count));
      });
    }
  });

  // Softmax of each row. The weight of the highest score is e^0 / Σ e^(score − highest), so that
  // log Σ e^score = highest − log(largest weight).
  for (std::size_t n = 0; n < N; ++n) {
    const float scale = cap_row(scores.row(n), rule, q.cols);
    const float highest = scale * max_row(scores.row(n));
    softmax_row(scores.row(n), scale);
    log_sums.row(n)[0] = highest - std::log(max_row(scores.row(n)));
  }

  // The weighted sums of the values.
  const ConstMatrix weights = scores;
  for (std::size_t n = 0; n < N; ++n) std::ranges::fill(out.row(n), 0.0f);
  for_pieces(pieces, [&](const KeyPiece& piece, std::size_t first) {
    for_heads(N, [&](std::size_t n, auto heads) {
      mix_values<heads>(weights.rows_from(n, heads).cols_from(first, piece.v.rows), piece.v,
                        out.rows_from(n, heads));
    });
  });
}

void attend_stretch(ConstMatrix q, ConstMatrix k, ConstMatrix v, Matrix scores, Matrix out,
                    Matrix log_sums, const ScoreRule& rule) {
  const KeyPiece whole{k, v};
  attend_stretch(q, {&whole, 1}, scores, out, log_sums, rule);
}

void join_stretches(ConstMatrix stretches, ConstRow log_sums, Row out) {
  // e^log_sum could overflow, so the highest log_sum so far is subtracted first. When a higher one
  // comes, the sums so far are multiplied by e^(before − highest).
  float highest = -std::numeric_limits<float>::infinity(), total = 0;
  std::ranges::fill(out, 0.0f);
  for (std::size_t p = 0; p < stretches.rows; ++p) {
    const float before = std::exchange(highest, std::max(highest, log_sums[p]));
    const float kept = std::exp(before - highest), share = std::exp(log_sums[p] - highest);
    total = kept * total + share;
    for (std::size_t d = 0; d < out.size(); ++d)
      out[d] = kept * out[d] + share * stretches.row(p)[d];
  }
  for (float& value : out) value /= total;
}

}  // namespace t2t
