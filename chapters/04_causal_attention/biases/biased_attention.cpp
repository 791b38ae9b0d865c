#include "04_causal_attention/biases/biased_attention.hpp"

#include <cmath>

#include "04_causal_attention/softmax.hpp"
#include "linalg.hpp"
#include "shapes.hpp"

namespace t2t {

Tensor<3> biased_attention_weights(const Tensor<3>& q, const Tensor<3>& k, const Tensor<3>& biases,
                                   Mask mask) {
  const std::size_t H = q.shape(0), T = q.shape(1), D = q.shape(2), S = k.shape(1);
  expect_shape("k", k, {H, S, D});
  expect_shape("biases", biases, {H, T, S});
  expect(D >= 1, "D, the width of a head", "at least 1", D);
  const Tensor<2> mask_added = attention_mask(T, S, mask);  // [T, S], the same for every head

  const Tensor<3> scores = matmul_bt(q, k) / std::sqrt(float(D)) + biases + mask_added;
  return softmax(scores);  // [H, T, S]
}

Tensor<3> biased_attention(const Tensor<3>& q, const Tensor<3>& k, const Tensor<3>& v,
                           const Tensor<3>& biases, Mask mask) {
  expect_shape("v", v, {k.shape(0), k.shape(1), k.shape(2)});
  return matmul(biased_attention_weights(q, k, biases, mask), v);  // [H, T, D]
}

}  // namespace t2t
