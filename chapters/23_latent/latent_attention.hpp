// Multi-head latent attention, MLA: the keys and values of all heads are made from one short vector
// per token, the latent. This file has the plain form.
//
//   (c⁰, kʳ) = x·W_kvaᵀ       c = norm(c⁰)           the latent c, [K], and one key kʳ, [R]
//   q = norm(x·W_qaᵀ)·W_qbᵀ                          head h's query is (qⁿ, qʳ), [N] and [R]
//   kⁿ = c·U_hᵀ               v = c·Y_hᵀ             head h's key is (kⁿ, kʳ), its value v
//   score = f·(qⁿ·kⁿ + qʳ·kʳ)                        f = m²/√(N + R)
//
// RoPE rotates qʳ and kʳ alone, and all heads share kʳ. A cache needs only c and kʳ of each token,
// K + R elements however many heads there are. absorbed.hpp computes the same without making any
// head's keys and values; cache/latent_cache.hpp generates with it, and model/ builds models of
// such layers from files. DeepSeek-AI 2024, "DeepSeek-V2".
#pragma once

#include <cstddef>

#include "03_rope/rope.hpp"
#include "04_causal_attention/fast/score_rule.hpp"
#include "random.hpp"
#include "tensor.hpp"

namespace t2t {

/// The sizes of one layer. The letters beyond the book's: a head's query and key have N channels
/// without RoPE and R with it, a head's value has Dv, K is the rank of the latent and Q that of the
/// queries.
struct LatentSettings {
  std::size_t C, H;
  std::size_t N, R;  // R is even
  std::size_t Dv, K;
  std::size_t Q = 0;  // 0: queries are made from x itself
  float m = 1;        // YaRN's factor (yarn_m), which multiplies the scores twice
  Pairing pairing = Pairing::neighbours;
  float eps = 1e-6f;  // of both norms

  std::size_t query_width() const { return N + R; }  // of a head
  std::size_t row_width() const { return K + R; }    // what a cache holds of a token
};

/// The weights of one layer.
struct LatentWeights {
  Tensor<2> w_qa;     // [Q, C]; [0, 0] if Q is 0
  Tensor<1> q_gain;   // [Q]
  Tensor<2> w_qb;     // [H·(N+R), Q]; [H·(N+R), C] if Q is 0
  Tensor<2> w_kva;    // [K+R, C]: the rows of c⁰, then those of kʳ
  Tensor<1> kv_gain;  // [K]
  Tensor<2> w_kvb;    // [H·(N+Dv), K]: of each head the rows of U, then those of Y
  Tensor<2> w_o;      // [C, H·Dv]
};

/// Throws std::invalid_argument, naming the value, unless all sizes but Q are at least 1, R is
/// even, m and eps are finite, m is above 0 and eps at least 0.
void expect_latent(const LatentSettings& settings);
/// The same, and when a weight's shape is not that of the struct.
void expect_latent(const LatentWeights& weights, const LatentSettings& settings);

/// Draws all matrices from a normal distribution with mean 0 and variance 1 / in, in the struct's
/// order; the gains are 1. Throws as expect_latent does.
LatentWeights draw_latent_weights(const LatentSettings& settings, Random& random);

/// How many parameters the weights have.
std::size_t latent_parameters(const LatentSettings& settings);

/// m = 1 + 0.1·mscale_all_dim·ln(factor) of a model whose context YaRN has stretched by `factor`;
/// 1 for a factor of 1. Throws std::invalid_argument unless factor is finite and at least 1.
float yarn_m(double factor, double mscale_all_dim);

/// A causal mask and the factor f.
ScoreRule latent_rule(const LatentSettings& settings);

/// U_h and Y_h, rows of w_kvb: what makes head h's keys and values of a latent. They check nothing.
ConstMatrix key_matrix(ConstMatrix w_kvb, const LatentSettings& settings, std::size_t h);  // [N, K]
ConstMatrix value_matrix(ConstMatrix w_kvb, const LatentSettings& settings,
                         std::size_t h);  // [Dv, K]

/// The queries of T tokens from position `start` on, with qʳ rotated: [T, H·(N+R)]. Throws as
/// expect_latent does, when x is not [T, C], and as chapter 03's expect_table does for R.
Tensor<2> latent_queries(const Tensor<2>& x,  // [T, C]
                         const LatentWeights& weights, const LatentSettings& settings,
                         const RopeTable& rope, std::size_t start);
/// What a cache keeps of T tokens, c after its norm and kʳ rotated, side by side: [T, K+R]. Throws
/// as latent_queries does.
Tensor<2> latent_rows(const Tensor<2>& x,  // [T, C]
                      const LatentWeights& weights, const LatentSettings& settings,
                      const RopeTable& rope, std::size_t start);

/// The query, keys and values of one head, the latter expanded from the latent.
struct LatentHead {
  Tensor<2> q;  // [T, N+R]
  Tensor<2> k;  // [S, N+R]
  Tensor<2> v;  // [S, Dv]
};
LatentHead expand_head(ConstMatrix q, ConstMatrix rows, ConstMatrix w_kvb,
                       const LatentSettings& settings, std::size_t h);

/// Throws std::invalid_argument unless q, rows and w_kvb have the shapes below, and as
/// expect_latent and chapter 04's expect_mask do.
void expect_attendable(ConstMatrix q, ConstMatrix rows, ConstMatrix w_kvb,
                       const LatentSettings& settings);

/// Attention in the plain form, head by head: [T, H·Dv]. The T queries belong to the last of the S
/// positions. Throws as expect_attendable does.
Tensor<2> attend_latent(const Tensor<2>& q,     // [T, H·(N+R)]
                        const Tensor<2>& rows,  // [S, K+R]
                        const Tensor<2>& w_kvb, const LatentSettings& settings);

/// The layer, in the plain form, from position 0 on: [T, C] to [T, C]. Throws as latent_queries and
/// attend_latent do.
Tensor<2> latent_attention(const Tensor<2>& x, const LatentWeights& weights,
                           const LatentSettings& settings, const RopeTable& rope);

}  // namespace t2t
