// Checks the arguments of a product with packed weights and chooses its kernel. Runs on the host.
#include "11_flash_attention/kernels/model/epilogues.hpp"
#include "11_flash_attention/kernels/tile_checks.hpp"
#include "12_quantization/kernels/packed_checks.hpp"
#include "12_quantization/kernels/packed_products.hpp"
#include "shapes.hpp"

namespace t2t {

void expect_packed_sizes(int T, int in, int out) {
  expect_product_sizes(T, in, out);
  expect(in % 32 == 0, "in", "a multiple of 32", in);
}

void expect_packed(const char* name, const PackedOnDevice& w) {
  expect_rows(name, w.bytes, Strides{0, 0, 0}, 1);
}

/// Few rows are normed by the product's own kernel, many by another one before it.
template <class Pointers, class Sums>
static void multiply(const NormedRows& x, DeviceForm form, const Pointers& w, const Sums& sums,
                     int T, int in, int out) {
  if (T <= few_rows) return multiply_packed_few(x, form, w, sums, T, in, out);
  launch_rms_norm(x, T, in);
  multiply_packed_many(x.scratch, form, w, sums, T, in, out);
}

void launch_packed_store(const NormedRows& x, const PackedOnDevice& w, int T, int in, int out,
                         float* y) {
  expect_packed_sizes(T, in, out);
  expect_normed_rows(x);
  expect_packed("w", w);
  expect_device("y", y);
  const unsigned char* const matrices[1] = {w.bytes};
  multiply(x, w.form, matrices, StoreSums{nullptr, y}, T, in, out);
}

void launch_packed_swiglu(const NormedRows& x, const PackedOnDevice& w_gate,
                          const PackedOnDevice& w_up, int T, int in, int out, bf16* y) {
  expect_packed_sizes(T, in, out);
  expect_normed_rows(x);
  expect_packed("w_gate", w_gate);
  expect_packed("w_up", w_up);
  expect(w_gate.form == w_up.form, "w_up", "the form of w_gate", double(w_up.form));
  expect_device("y", y);
  const unsigned char* const matrices[2] = {w_gate.bytes, w_up.bytes};
  multiply(x, w_gate.form, matrices, SwigluSums{nullptr, nullptr, y}, T, in, out);
}

void launch_packed_add(const bf16* x, const PackedOnDevice& w, int T, int in, int out, float* y) {
  expect_packed_sizes(T, in, out);
  expect_bf16_rows("x", x);
  expect_packed("w", w);
  expect_device("y", y);
  const unsigned char* const matrices[1] = {w.bytes};
  const AddSums sums{nullptr, y};
  T <= few_rows ? multiply_packed_few(x, w.form, matrices, sums, T, in, out)
                : multiply_packed_many(x, w.form, matrices, sums, T, in, out);
}

}  // namespace t2t
