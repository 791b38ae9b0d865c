#include "04_causal_attention/attention.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "04_causal_attention/softmax.hpp"
#include "shapes.hpp"

namespace t2t {

void expect_mask(std::size_t T, std::size_t S, Mask mask) {
  if (T == 0) refuse("T, the number of queries", "at least 1", T);
  if (S == 0) refuse("S, the number of keys", "at least 1", S);
  if (T > S)  // WRONG
    throw std::invalid_argument(
        fmt::format("causal mask: wanted at least as many keys as queries, got {} and {}", S, T));
  if (!mask.is_causal && mask.window != 0)
    refuse("window", "0, since the mask is not causal", mask.window);
}

KeyRange keys_seen(std::size_t t, std::size_t T, std::size_t S, Mask mask) {
  if (mask.is_causal) {
    const std::size_t own = t + (S - T);
    const std::size_t seen = own + 1;
    if (mask.window == 0 || mask.window >= seen) return {0, seen};
    return {seen - mask.window, seen};
  }
  return {0, S};
}

Tensor<2> attention_mask(std::size_t T, std::size_t S, Mask mask) {
  expect_mask(T, S, mask);
  Tensor<2> added = empty(T, S);
  for (std::size_t t = 0; t < T; ++t) {
    const auto [begin, end] = keys_seen(t, T, S, mask);
    for (std::size_t s = 0; s < S; ++s) {
      const bool visible = begin <= s && s < end;
      added(t, s) = visible ? 0.0f : -std::numeric_limits<float>::infinity();
    }
  }
  return added;
}

Tensor<2> attention_scores(const Tensor<2>& q, const Tensor<2>& k, Mask mask) {
  const std::size_t queries = q.shape(0), keys = k.shape(0), width = q.shape(1);
  expect_shape("k", k, {keys, width});
  if (width == 0) refuse("D, the width of a head", "at least 1", width);
  Tensor<2> scores = attention_mask(queries, keys, mask);
  const float divisor = std::sqrt(float(width));
  for (std::size_t t = 0; t < queries; ++t)
    for (std::size_t s = 0; s < keys; ++s) {
      const ConstRow query = row(q, t), key = row(k, s);
      scores(t, s) += std::inner_product(query.begin(), query.end(), key.begin(), 0.0f) / divisor;
    }
  return scores;
}

Tensor<2> attention_weights(const Tensor<2>& q, const Tensor<2>& k, Mask mask) {
  return softmax(attention_scores(q, k, mask));
}

Tensor<2> attention(const Tensor<2>& q, const Tensor<2>& k, const Tensor<2>& v, Mask mask) {
  expect_shape("v", v, {k.shape(0), k.shape(1)});
  const Tensor<2> weights = attention_weights(q, k, mask);
  Tensor<2> mixed = xt::zeros<float>({q.shape(0), v.shape(1)});
  for (std::size_t t = 0; t < mixed.shape(0); ++t)
    for (std::size_t s = 0; s < v.shape(0); ++s)
      for (std::size_t d = 0; d < v.shape(1); ++d) mixed(t, d) += weights(t, s) * v(s, d);
  return mixed;
}

}  // namespace t2t
