#include "08_block/block.hpp"

#include <functional>
#include <stdexcept>
#include <string>

#include "06_gqa/grouped_query_attention.hpp"
#include "shapes.hpp"

namespace t2t {

// [formulas]
/// The steps of a block, each a function from [T, C] to [T, C].
struct Steps {
  std::function<Tensor<2>(const Tensor<2>&)> norm_1, attention, norm_2, network;
};

static Tensor<2> pre_norm(const Tensor<2>& x, const Steps& steps) {
  const Tensor<2> y = x + steps.attention(steps.norm_1(x));  // [T, C]
  return y + steps.network(steps.norm_2(y));                 // [T, C]
}

static Tensor<2> post_norm(const Tensor<2>& x, const Steps& steps) {
  const Tensor<2> y = steps.norm_1(x + steps.attention(x));  // [T, C]
  return steps.norm_2(y + steps.network(y));                 // [T, C]
}
// [/formulas]

/// x·wᵀ, plus the bias if there is one.
static Tensor<2> projected(const Tensor<2>& x, const Weight& w, const Tensor<1>& b) {
  Tensor<2> y = matmul_bt(x, w);  // [T, out]
  if (b.size() > 0) y += b;
  return y;
}

/// Normalizes heads. The size of the gain says how: D, a norm for each head (Qwen 3), or that of
/// all heads together, one norm over all of them (OLMoE).
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

Tensor<2> block(const Tensor<2>& x, const BlockWeights& weights, const BlockSettings& settings,
                const RopeTable& table, const NetworkFormula& network) {
  expect_settings(settings);
  expect_weights(weights, settings);
  expect_shape("x", x, {x.shape(0), settings.C});
  if (!network && (settings.F == 0 || settings.experts > 0))
    throw std::invalid_argument(std::string("block: wanted a network, since ") +
                                (settings.F == 0 ? "F is 0" : "it has experts") + ", got none");
  const auto norm_1 = [&](const Tensor<2>& in) {
    return norm(in, weights.attention_norm, settings.norm, settings.eps);
  };
  const auto norm_2 = [&](const Tensor<2>& in) {
    return norm(in, weights.feed_forward_norm, settings.norm, settings.eps);
  };
  // With norms on both sides a part ends with a norm of its own; the sums are those of pre-norm.
  const auto ended = [&](Tensor<2> added, const NormWeights& gains) {
    return settings.norm_place == NormPlace::both ? norm(added, gains, settings.norm, settings.eps)
                                                  : added;
  };
  const auto attention = [&](const Tensor<2>& in) {
    return ended(attention_of(in, weights, settings, table), weights.post_attention_norm);
  };
  const auto network_of = [&](const Tensor<2>& in) {
    return ended(network ? network(in, weights, settings)
                         : feed_forward(in, weights.feed_forward, settings.activation),
                 weights.post_feed_forward_norm);
  };
  const Steps steps = {norm_1, attention, norm_2, network_of};
  return settings.norm_place == NormPlace::after ? post_norm(x, steps) : pre_norm(x, steps);
}

}  // namespace t2t
