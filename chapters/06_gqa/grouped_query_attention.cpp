#include "06_gqa/grouped_query_attention.hpp"

#include <fmt/core.h>

#include <cmath>
#include <stdexcept>

#include "04_causal_attention/fast/score_rule.hpp"
#include "04_causal_attention/multi_head.hpp"
#include "linalg.hpp"
#include "shapes.hpp"

namespace t2t {

void expect_groups(std::size_t H, std::size_t G) {
  if (H < 1 || G < 1 || H % G != 0)
    throw std::invalid_argument(fmt::format(
        "groups: wanted G key and value heads that divide H query heads, got H = {}, G = {}", H,
        G));
}

// [formula]
std::size_t group_of(std::size_t h, std::size_t H, std::size_t G) { return h / (H / G); }

Tensor<2> grouped_query_attention(const Tensor<2>& q, const Tensor<2>& k, const Tensor<2>& v,
                                  std::size_t H, std::size_t G, const ScoreRule& rule) {
  expect_groups(H, G);
  const Tensor<3> queries = split_heads(q, H);  // [H, T, D]
  const std::size_t T = q.shape(0), S = k.shape(0), D = queries.shape(2);
  expect_shape("k", k, {S, G * D});
  expect_shape("v", v, {S, G * D});
  const Tensor<3> keys = split_heads(k, G), values = split_heads(v, G);  // [G, S, D]

  Tensor<3> heads = empty(H, T, D);  // [H, T, D]
  for (std::size_t h = 0; h < H; ++h) {
    const std::size_t g = group_of(h, H, G);
    xt::view(heads, h) =
        attention(xt::view(queries, h), xt::view(keys, g), xt::view(values, g), rule);
  }
  return merge_heads(heads);  // [T, H·D]
}
// [/formula]

GroupedWeights draw_grouped_weights(std::size_t C, std::size_t H, std::size_t G, std::size_t D,
                                    Random& random) {
  expect_groups(H, G);
  const auto draw = [&](std::size_t out, std::size_t in) {
    return random.normal<2>({out, in}, 1 / std::sqrt(float(in)));
  };
  return {draw(H * D, C), draw(G * D, C), draw(G * D, C), draw(C, H * D)};  // braces: in this order
}

std::size_t grouped_parameters(std::size_t C, std::size_t H, std::size_t G, std::size_t D) {
  return 2 * C * D * (H + G);
}

Tensor<2> grouped_query_attention(const Tensor<2>& x, const Tensor<2>& memory,
                                  const GroupedWeights& weights, std::size_t H, std::size_t G,
                                  Mask mask) {
  expect_groups(H, G);
  const std::size_t C = x.shape(1), D = weights.w_q.shape(0) / H;
  expect_shape("memory", memory, {memory.shape(0), C});
  expect_shape("w_q", weights.w_q, {H * D, C});
  expect_shape("w_k", weights.w_k, {G * D, C});
  expect_shape("w_v", weights.w_v, {G * D, C});
  expect_shape("w_o", weights.w_o, {C, H * D});
  const Tensor<2> q = matmul_bt(x, weights.w_q);                                // [T, H·D]
  const Tensor<2> k = matmul_bt(memory, weights.w_k);                           // [S, G·D]
  const Tensor<2> v = matmul_bt(memory, weights.w_v);                           // [S, G·D]
  return matmul_bt(grouped_query_attention(q, k, v, H, G, mask), weights.w_o);  // [T, C]
}

Tensor<2> grouped_query_attention(const Tensor<2>& x, const GroupedWeights& weights, std::size_t H,
                                  std::size_t G, Mask mask) {
  return grouped_query_attention(x, x, weights, H, G, mask);
}

}  // namespace t2t
