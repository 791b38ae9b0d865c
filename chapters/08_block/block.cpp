#include "08_block/block.hpp"

#include <stdexcept>
#include <string>

#include "06_gqa/grouped_query_attention.hpp"
#include "shapes.hpp"

namespace t2t {

/// x·wᵀ, plus the bias if there is one.
static Tensor<2> projected(const Tensor<2>& x, const Weight& w, const Tensor<1>& b) {
  Tensor<2> y = matmul_bt(x, w);  // [T, out]
  if (b.size() > 0) y += b;
  return y;
}

/// Normalizes the heads of q or of k: each by itself if the gain has D elements (Qwen 3), and all
/// of them together if it has one for each of their channels (OLMoE).
static Tensor<2> normed_heads(Tensor<2> x, const NormWeights& weights, const BlockSettings& s) {
  const std::size_t T = x.shape(0), HD = x.shape(1), width = weights.gain.size();
  x.reshape({T * HD / width, width});  // a row for each norm
  x = norm(x, weights, s.norm, s.eps);
  x.reshape({T, HD});
  return x;
}

/// What attention adds to the stream. x is what it reads: norm(x) in pre-norm.
static Tensor<2> attention_of(const Tensor<2>& x, const BlockWeights& weights,
                              const BlockSettings& settings, const RopeTable& table) {
  const std::size_t H = settings.H, G = settings.G, D = settings.D;
  Tensor<2> q = projected(x, weights.w_q, weights.b_q);        // [T, H·D]
  Tensor<2> k = projected(x, weights.w_k, weights.b_k);        // [T, G·D]
  const Tensor<2> v = projected(x, weights.w_v, weights.b_v);  // [T, G·D]
  if (settings.head_norms) {
    q = normed_heads(q, weights.q_norm, settings);
    k = normed_heads(k, weights.k_norm, settings);
  }
  if (settings.uses_rope) {
    q = rope(q, D, table, 0, settings.pairing);
    k = rope(k, D, table, 0, settings.pairing);
  }
  const Tensor<2> heads = grouped_query_attention(q, k, v, H, G, rule_of(settings));  // [T, H·D]
  return projected(heads, weights.w_o, weights.b_o);                                  // [T, C]
}

static void expect_block(const Tensor<2>& x, const BlockWeights& weights,
                         const BlockSettings& settings, const ReferenceNetwork& network) {
  expect_settings(settings);
  expect_weights(weights, settings);
  expect_shape("x", x, {x.shape(0), settings.C});
  if (!network && (settings.F == 0 || settings.experts > 0))
    throw std::invalid_argument(std::string("block: wanted a network, since ") +
                                (settings.F == 0 ? "F is 0" : "it has experts") + ", got none");
}

Tensor<2> block(const Tensor<2>& x, const BlockWeights& weights, const BlockSettings& settings,
                const RopeTable& table, const ReferenceNetwork& network) {
  expect_block(x, weights, settings, network);
  const auto normed = [&](const Tensor<2>& in, const NormWeights& gain) {
    return norm(in, gain, settings.norm, settings.eps);
  };
  const auto attention = [&](const Tensor<2>& in) {
    return attention_of(in, weights, settings, table);
  };
  const auto network_of = [&](const Tensor<2>& in) {
    return network ? network(in, weights, settings)
                   : feed_forward(in, weights.feed_forward, settings.activation);
  };
  const NormWeights &norm_1 = weights.attention_norm, &norm_2 = weights.feed_forward_norm,
                    &norm_3 = weights.post_attention_norm, &norm_4 = weights.post_feed_forward_norm;

  if (settings.norm_place == NormPlace::before) {
    const Tensor<2> y = x + attention(normed(x, norm_1));  // [T, C]
    return y + network_of(normed(y, norm_2));              // [T, C]
  }
  if (settings.norm_place == NormPlace::after) {
    const Tensor<2> y = normed(x + attention(x), norm_1);  // [T, C]
    return normed(y + network_of(y), norm_2);              // [T, C]
  }
  const Tensor<2> y = x + normed(attention(normed(x, norm_1)), norm_3);  // [T, C]
  return y + normed(network_of(normed(y, norm_2)), norm_4);              // [T, C]
}

}  // namespace t2t
