#include "06_gqa/grouped_query_attention.hpp"

#include <fmt/core.h>

#include <cmath>
#include <stdexcept>

#include "04_causal_attention/multi_head.hpp"
#include "linalg.hpp"
#include "shapes.hpp"

namespace t2t {

namespace {

/// The columns of one head, as a tensor of its own.
Tensor<2> head_of(const Tensor<2>& x, std::size_t head, std::size_t D) {
  return copy_of(ConstMatrix(x).head(head, D));
}

Tensor<2> draw(std::size_t out, std::size_t in, Random& random) {
  return random.normal<2>({out, in}, 1 / std::sqrt(float(in)));
}

}  // namespace

void expect_groups(std::size_t H, std::size_t G) {
  if (G >= 1 && H >= 1 && H % G == 0) return;
  throw std::invalid_argument(fmt::format(
      "groups: wanted G key and value heads that divide H query heads, got H = {}, G = {}", H, G));
}

std::size_t group_of(std::size_t h, std::size_t H, std::size_t G) {
  const std::size_t heads_of_group = H / G;
  return h / heads_of_group;
}

Tensor<2> grouped_query_attention(const Tensor<2>& q, const Tensor<2>& k, const Tensor<2>& v,
                                  std::size_t H, std::size_t G, const ScoreRule& rule) {
  expect_groups(H, G);
  expect_divides(q.shape(1), H);
  const std::size_t D = q.shape(1) / H, T = q.shape(0), S = k.shape(0);
  expect_shape("k", k, {S, G * D});
  expect_shape("v", v, {S, G * D});

  Tensor<2> out = empty(T, H * D);
  for (std::size_t h = 0; h < H; ++h) {
    const Tensor<2> keys = head_of(k, group_of(h, H, G), D);
    const Tensor<2> values = head_of(v, h % G, D);  // WRONG
    const Tensor<2> mixed = attention(head_of(q, h, D), keys, values, rule);
    for (std::size_t t = 0; t < T; ++t)
      for (std::size_t d = 0; d < D; ++d) out(t, h * D + d) = mixed(t, d);
  }
  return out;
}

GroupedWeights draw_grouped_weights(std::size_t C, std::size_t H, std::size_t G, std::size_t D,
                                    Random& random) {
  expect_groups(H, G);
  GroupedWeights weights;
  weights.w_q = draw(H * D, C, random);
  weights.w_k = draw(G * D, C, random);
  weights.w_v = draw(G * D, C, random);
  weights.w_o = draw(C, H * D, random);
  return weights;
}

std::size_t grouped_parameters(std::size_t C, std::size_t H, std::size_t G, std::size_t D) {
  const std::size_t queries_and_output = 2 * H * D * C, keys_and_values = 2 * G * D * C;
  return queries_and_output + keys_and_values;
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
  const Tensor<2> mixed =
      grouped_query_attention(matmul_bt(x, weights.w_q), matmul_bt(memory, weights.w_k),
                              matmul_bt(memory, weights.w_v), H, G, ScoreRule(mask));
  return matmul_bt(mixed, weights.w_o);
}

Tensor<2> grouped_query_attention(const Tensor<2>& x, const GroupedWeights& weights, std::size_t H,
                                  std::size_t G, Mask mask) {
  return grouped_query_attention(x, x, weights, H, G, mask);
}

}  // namespace t2t
