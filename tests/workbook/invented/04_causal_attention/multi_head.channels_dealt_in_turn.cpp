#include "04_causal_attention/multi_head.hpp"

#include <fmt/core.h>

#include <cmath>
#include <stdexcept>

#include "04_causal_attention/softmax.hpp"
#include "linalg.hpp"
#include "shapes.hpp"

namespace t2t {

void expect_divides(std::size_t C, std::size_t H) {
  const bool whole = C > 0 && H > 0 && C % H == 0;
  if (!whole)
    throw std::invalid_argument(
        fmt::format("heads: wanted a number H that divides C = {}, got H = {}", C, H));
}

Tensor<3> split_heads(const Tensor<2>& x, std::size_t H) {
  const std::size_t tokens = x.shape(0), channels = x.shape(1);
  expect_divides(channels, H);
  const std::size_t D = channels / H;
  Tensor<3> heads = empty(H, tokens, D);
  for (std::size_t t = 0; t < tokens; ++t)
    for (std::size_t c = 0; c < channels; ++c)
      heads(c % H, t, c / H) = x(t, c);  // WRONG
  return heads;
}

Tensor<2> merge_heads(const Tensor<3>& heads) {
  const std::size_t tokens = heads.shape(1), D = heads.shape(2), channels = heads.shape(0) * D;
  Tensor<2> x = empty(tokens, channels);
  for (std::size_t t = 0; t < tokens; ++t)
    for (std::size_t c = 0; c < channels; ++c) x(t, c) = heads(c / D, t, c % D);
  return x;
}

AttentionWeights draw_attention_weights(std::size_t C, Random& random) {
  const float deviation = 1 / std::sqrt(float(C));
  AttentionWeights drawn;
  for (Tensor<2>* w : {&drawn.w_q, &drawn.w_k, &drawn.w_v, &drawn.w_o})
    *w = random.normal<2>({C, C}, deviation);
  return drawn;
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
  const Tensor<2> hidden = attention_mask(T, S, mask);

  const std::size_t D = C / H;
  const Tensor<3> q = split_heads(matmul_bt(x, weights.w_q), H);
  const Tensor<3> k = split_heads(matmul_bt(memory, weights.w_k), H);
  const Tensor<3> v = split_heads(matmul_bt(memory, weights.w_v), H);

  const float scale = 1 / std::sqrt(float(D));
  Tensor<3> results = empty(H, T, D);
  for (std::size_t h = 0; h < H; ++h) {
    Tensor<2> scores = empty(T, S);
    matmul_bt(matrix(q, h), matrix(k, h), scores, scale);
    scores += hidden;
    const Tensor<2> shares = softmax(scores);
    matmul(shares, matrix(v, h), matrix(results, h));
  }
  return matmul_bt(merge_heads(results), weights.w_o);
}

Tensor<2> multi_head_attention(const Tensor<2>& x, const AttentionWeights& weights, std::size_t H,
                               Mask mask) {
  return multi_head_attention(x, x, weights, H, mask);
}

}  // namespace t2t
