// What the model's kernels refuse. This file runs on the host.
#include "11_flash_attention/kernels/model/model_kernels.hpp"
#include "11_flash_attention/kernels/tile_checks.hpp"
#include "shapes.hpp"

namespace t2t {

void expect_bf16_rows(const char* name, const bf16* rows) {
  expect_rows(name, rows, Strides{0, 0, 0}, sizeof(bf16));
}

void expect_normed_rows(const NormedRows& x) {
  expect_device("x", x.x);
  expect_device("gain", x.gain);
  expect_eps(x.eps);
  expect_bf16_rows("scratch", x.scratch);
}

void expect_product_sizes(int T, int in, int out) {
  expect(T >= 1 && T <= 65535, "T", "1 to 65535", T);
  expect(in >= 8 && in % 8 == 0, "in", "a multiple of 8", in);
  expect(out >= 1 && out <= 65535 * 64, "out", "1 to 4194240", out);
}

}  // namespace t2t
