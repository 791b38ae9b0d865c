// Checks a product's arguments and chooses its kernel. Runs on the host.
#include "11_flash_attention/kernels/model/products.hpp"

#include "11_flash_attention/kernels/model/epilogues.hpp"

namespace t2t {

/// Few rows are normed by the product's own kernel, many by another one before it.
template <class Epilogue>
static void multiply(const NormedRows& x, const Epilogue& epilogue, int T, int in, int out) {
  if (T <= few_rows) return multiply_few(x, epilogue, T, in, out);
  launch_rms_norm(x, T, in);
  multiply_many(x.scratch, epilogue, T, in, out);
}

void launch_store_product(const NormedRows& x, const bf16* w, int T, int in, int out, float* y) {
  expect_product_sizes(T, in, out);
  expect_normed_rows(x);
  expect_bf16_rows("w", w);
  expect_device("y", y);
  multiply(x, StoreSums{w, y}, T, in, out);
}

void launch_swiglu_product(const NormedRows& x, const bf16* w_gate, const bf16* w_up, int T, int in,
                           int out, bf16* y) {
  expect_product_sizes(T, in, out);
  expect_normed_rows(x);
  expect_bf16_rows("w_gate", w_gate);
  expect_bf16_rows("w_up", w_up);
  expect_device("y", y);
  multiply(x, SwigluSums{w_gate, w_up, y}, T, in, out);
}

void launch_add_product(const bf16* x, const bf16* w, int T, int in, int out, float* y) {
  expect_product_sizes(T, in, out);
  expect_bf16_rows("x", x);
  expect_bf16_rows("w", w);
  expect_device("y", y);
  const AddSums epilogue{w, y};
  T <= few_rows ? multiply_few(x, epilogue, T, in, out) : multiply_many(x, epilogue, T, in, out);
}

}  // namespace t2t
