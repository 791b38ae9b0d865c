#include "04_causal_attention/multi_head.hpp"

#include <fmt/core.h>

#include <cmath>
#include <stdexcept>

#include "04_causal_attention/softmax.hpp"
#include "linalg.hpp"
#include "shapes.hpp"

namespace t2t {

void expect_divides(std::size_t C, std::size_t H) {
  if (H < 1 || C < 1 || C % H != 0)
    throw std::invalid_argument(
        fmt::format("heads: wanted a number H that divides C = {}, got H = {}", C, H));
}

Tensor<3> split_heads(const Tensor<2>& x, std::size_t H) {
  const std::size_t T = x.shape(0), C = x.shape(1);
  expect_divides(C, H);
  Tensor<3> heads = empty(H, T, C / H);  // [H, T, D]
  for (std::size_t h = 0; h < H; ++h)
    for (std::size_t t = 0; t < T; ++t)
      for (std::size_t d = 0; d < C / H; ++d) heads(h, t, d) = x(t, h * (C / H) + d);
  return heads;
}

Tensor<2> merge_heads(const Tensor<3>& heads) {
  const std::size_t H = heads.shape(0), T = heads.shape(1), D = heads.shape(2);
  Tensor<2> x = empty(T, H * D);  // [T, C]
  for (std::size_t h = 0; h < H; ++h)
    for (std::size_t t = 0; t < T; ++t)
      for (std::size_t d = 0; d < D; ++d) x(t, h * D + d) = heads(h, t, d);
  return x;
}

AttentionWeights draw_attention_weights(std::size_t C, Random& random) {
  const auto draw = [&] { return random.normal<2>({C, C}, 1 / std::sqrt(float(C))); };
  return {draw(), draw(), draw(), draw()};  // braces draw them in this order
}

Tensor<2> multi_head_attention(const Tensor<2>& x, const Tensor<2>& memory,
                               const AttentionWeights& weights, std::size_t H, Mask mask) {
  const std::size_t T = x.shape(0), S = memory.shape(0), C = x.shape(1);
  expect_divides(C, H);
  expect_shape("memory", memory, {S, C});
  expect_shape("w_q", weights.w_q, {C, C});
  expect_shape("w_k", weights.w_k, {C, C});
  expect_shape("w_v", weights.w_v, {C, C});
  expect_shape("w_o", weights.w_o, {C, C});
  const Tensor<2> mask_added = attention_mask(T, S, mask);  // [T, S], for every head

  const Tensor<3> q = split_heads(matmul_bt(x, weights.w_q), H);       // [H, T, D]
  const Tensor<3> k = split_heads(matmul_bt(memory, weights.w_k), H);  // [H, S, D]
  const Tensor<3> v = split_heads(matmul_bt(memory, weights.w_v), H);  // [H, S, D]

  const Tensor<3> scores = matmul_bt(q, k) / std::sqrt(float(C / H)) + mask_added;  // [H, T, S]
  const Tensor<3> heads = matmul(softmax(scores), v);                               // [H, T, D]
  return matmul_bt(merge_heads(heads), weights.w_o);                                // [T, C]
}

Tensor<2> multi_head_attention(const Tensor<2>& x, const AttentionWeights& weights, std::size_t H,
                               Mask mask) {
  return multi_head_attention(x, x, weights, H, mask);
}

}  // namespace t2t
