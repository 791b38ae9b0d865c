#include "08_block/block.hpp"

#include <algorithm>

#include "02_normalization/layer_norm.hpp"
#include "02_normalization/rms_norm.hpp"
#include "linalg.hpp"
#include "shapes.hpp"

namespace t2t {

static Tensor<2> normed(const Tensor<2>& x, const NormWeights& norm,
                        const BlockSettings& settings) {
  return settings.norm == Norm::rms ? rms_norm(x, norm.gain, settings.eps)
                                    : layer_norm(x, norm.gain, norm.bias, settings.eps);
}

/// x·wᵀ, and the bias where there is one.
static Tensor<2> projected(const Tensor<2>& x, const Tensor<2>& w, const Tensor<1>& b) {
  Tensor<2> y = matmul_bt(x, w);  // [T, out]
  if (b.size() > 0) y += b;
  return y;
}

/// RoPE from position 0 on, of heads side by side: [T, H·D].
static Tensor<2> turned(const Tensor<2>& x, const BlockSettings& settings, const RopeTable& table) {
  if (!settings.turned) return x;
  Tensor<3> heads = empty(x.shape(0), x.shape(1) / settings.D, settings.D);  // [T, H, D]
  std::ranges::copy(x, heads.begin());
  heads = rope(heads, table, 0, settings.pairing);
  Tensor<2> y = Tensor<2>::from_shape(x.shape());
  std::ranges::copy(heads, y.begin());
  return y;
}

/// What attention adds to the stream, from what it reads there.
static Tensor<2> attention_of(const Tensor<2>& x, const BlockWeights& weights,
                              const BlockSettings& settings, const RopeTable& table) {
  const Tensor<2> q = turned(projected(x, weights.w_q, weights.b_q), settings, table);  // [T, H·D]
  const Tensor<2> k = turned(projected(x, weights.w_k, weights.b_k), settings, table);  // [T, G·D]
  const Tensor<2> v = projected(x, weights.w_v, weights.b_v);                           // [T, G·D]
  const Tensor<2> heads =
      grouped_query_attention(q, k, v, settings.H, settings.G, Mask::causal);  // [T, H·D]
  return projected(heads, weights.w_o, weights.b_o);                           // [T, C]
}

Tensor<2> block(const Tensor<2>& x, const BlockWeights& weights, const BlockSettings& settings,
                const RopeTable& table) {
  expect_settings(settings);
  expect_weights(weights, settings);
  expect_shape("x", x, {x.shape(0), settings.C});
  const NormWeights &norm_1 = weights.attention_norm, &norm_2 = weights.feed_forward_norm;
  const auto attention = [&](const Tensor<2>& x) {
    return attention_of(x, weights, settings, table);
  };
  const auto network = [&](const Tensor<2>& x) {
    return feed_forward(x, weights.feed_forward, settings.activation);
  };

  if (settings.norm_place == NormPlace::before) {
    const Tensor<2> y = x + attention(normed(x, norm_1, settings));  // [T, C]
    return y + network(normed(y, norm_2, settings));                 // [T, C]
  }
  const Tensor<2> y = normed(x + attention(x), norm_1, settings);  // [T, C]
  return normed(y + network(y), norm_2, settings);                 // [T, C]
}

}  // namespace t2t
