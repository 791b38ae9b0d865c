// [formula]
Tensor<2> multi_head_attention(const Tensor<2>& x, const Tensor<2>& memory,
                               const AttentionWeights& weights, std::size_t H, Mask mask) {
  const std::size_t T = x.shape(0), S = memory.shape(0), C = x.shape(1);
  expect_divides(C, H);
  expect_shape("memory", memory, {S, C});
  expect_shape("w_q", weights.w_q, {C, C});
  expect_shape("w_k", weights.w_k, {C, C});
  expect_shape("w_v", weights.w_v, {C, C});
  expect_shape("w_o", weights.w_o, {C, C});
  expect_mask(T, S, mask);
  const Tensor<2> q = matmul_bt(x, weights.w_q);
  const Tensor<2> k = matmul_bt(memory, weights.w_k), v = matmul_bt(memory, weights.w_v);
  Tensor<2> out = empty(T, C);
  AttentionScratch scratch(T, S);
  attend_heads(q, side_by_side(k, v, H), mask, out, scratch.rows());
  return matmul_bt(out, weights.w_o);
}
