// The embedding from a packed table: each thread unpacks single weights of the token's row.
#include <cstddef>

#include "11_flash_attention/kernels/model/model_kernels.hpp"
#include "12_quantization/kernels/packed_checks.hpp"
#include "12_quantization/kernels/packed_kernels.hpp"
#include "cuda/kernel.hpp"

namespace t2t {

namespace {

constexpr int threads = 128;  // of a block, which unpacks one row

/// The order of the bytes is that in packed_rows.hpp.
__global__ void packed_embed(const unsigned char* table, DeviceBlock of, const int* ids, int C,
                             float* x) {
  const int row = ids[blockIdx.x], r = row % 16;
  const unsigned char* group = table + std::size_t(row / 16) * (C / 32) * of.bytes();
  for (int c = threadIdx.x; c < C; c += threads) {
    const unsigned char* block = group + c / 32 * of.bytes();
    const half* head = reinterpret_cast<const half*>(block);
    const int n = c % 32, at = of.bits == 8 ? n : n % 16, shift = of.bits == 8 ? 0 : n / 16 * 4;
    const int q = block[of.head_bytes() + at / 4 * 64 + 4 * r + at % 4] >> shift;
    const float number = float((q & ((1 << of.bits) - 1)) - of.offset);
    const float minimum = of.has_minimum ? __half2float(head[16 + r]) : 0;
    x[std::size_t(blockIdx.x) * C + c] = __half2float(head[r]) * number + minimum;
  }
}

}  // namespace

void launch_packed_embed(const PackedOnDevice& table, const int* ids, int T, int C, float* x) {
  expect_packed_sizes(T, C, 1);
  expect_packed("table", table);
  expect_device("ids", ids);
  expect_device("x", x);
  T2T_LAUNCH(packed_embed, dim3(unsigned(T)), dim3(threads), 0, table.bytes,
             device_block(table.form), ids, C, x);
}

}  // namespace t2t
