#include "04_causal_attention/attention.hpp"

#include <fmt/core.h>

#include <cmath>
#include <limits>
#include <stdexcept>

#include "04_causal_attention/softmax.hpp"
#include "linalg.hpp"
#include "shapes.hpp"

namespace t2t {

static constexpr float infinity = std::numeric_limits<float>::infinity();

void expect_mask(std::size_t T, std::size_t S, Mask mask) {
  expect(T >= 1, "T, the number of queries", "at least 1", T);
  expect(S >= 1, "S, the number of keys", "at least 1", S);
  if (mask.is_causal && T > S)
    throw std::invalid_argument(
        fmt::format("causal mask: wanted at least as many keys as queries, got {} and {}", S, T));
  expect(mask.is_causal || mask.window == 0, "window", "0, since the mask is not causal",
         mask.window);
}

KeyRange keys_seen(std::size_t t, std::size_t T, std::size_t S, Mask mask) {
  if (!mask.is_causal) return {0, S};
  const std::size_t end = S - T + t + 1;
  const bool window_hides = mask.window > 0 && mask.window < end;
  return {window_hides ? end - mask.window : 0, end};
}

Tensor<2> attention_mask(std::size_t T, std::size_t S, Mask mask) {
  expect_mask(T, S, mask);
  Tensor<2> added = xt::ones<float>({T, S}) * -infinity;
  for (std::size_t t = 0; t < T; ++t) {
    const KeyRange seen = keys_seen(t, T, S, mask);
    for (std::size_t s = seen.begin; s < seen.end; ++s) added(t, s) = 0;
  }
  return added;
}

Tensor<2> attention_scores(const Tensor<2>& q, const Tensor<2>& k, Mask mask) {
  const std::size_t T = q.shape(0), S = k.shape(0), D = q.shape(1);
  expect_shape("k", k, {S, D});
  expect(D >= 1, "D, the width of a head", "at least 1", D);
  const Tensor<2> mask_added = attention_mask(T, S, mask);  // [T, S]

  return matmul_bt(q, k) / std::sqrt(float(D)) + mask_added;  // [T, S]
}

Tensor<2> attention_weights(const Tensor<2>& q, const Tensor<2>& k, Mask mask) {
  return softmax(attention_scores(q, k, mask));  // [T, S]
}

Tensor<2> attention(const Tensor<2>& q, const Tensor<2>& k, const Tensor<2>& v, Mask mask) {
  expect_shape("v", v, {k.shape(0), k.shape(1)});
  return matmul(attention_weights(q, k, mask), v);  // [T, D]
}

}  // namespace t2t
