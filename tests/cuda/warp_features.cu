// What a warp does together: shuffles, votes, products of matrices; and numbers of 16 bits.
#include "cuda/device.hpp"
#include "cuda/kernel.hpp"
#include "cuda/tensor_core.hpp"
#include "features.hpp"
#include "uploaded.hpp"

namespace t2t {
namespace {

constexpr unsigned kAll = 0xffffffffu;

__global__ void shuffle(int* out) {
  const int lane = static_cast<int>(threadIdx.x);
  out[lane] = __shfl_sync(kAll, lane, lane + 1);
  out[32 + lane] = __shfl_xor_sync(kAll, lane, 5);
  out[64 + lane] = __shfl_up_sync(kAll, lane, 2);
  out[96 + lane] = __shfl_down_sync(kAll, lane, 2);
  out[128 + lane] = __shfl_up_sync(kAll, lane, 1, 8);
  out[160 + lane] = __shfl_down_sync(kAll, lane, 1, 8);
  out[192 + lane] = __shfl_xor_sync(kAll, lane, 8, 8);
}

__global__ void vote(unsigned* out) {
  const unsigned lane = threadIdx.x;
  const unsigned ballot = __ballot_sync(kAll, lane < 3);
  const int any = __any_sync(kAll, lane < 3), all = __all_sync(kAll, lane < 3);
  unsigned upper = 0;
  if (lane >= 16) upper = __ballot_sync(0xffff0000u, lane % 2);
  __syncwarp();
  if (lane != 31) return;
  out[0] = ballot;
  out[1] = static_cast<unsigned>(any);
  out[2] = static_cast<unsigned>(all);
  out[3] = upper;
}

template <int Factor>
__global__ void sum_warps(float* out) {
  float sum = Factor * static_cast<float>(threadIdx.x + 1);
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    sum += __shfl_xor_sync(kAll, sum, distance);
  }
  if (threadIdx.x % 32 == 0) out[threadIdx.x / 32] = sum;
}

__global__ void round_to_16_bits(float x, float* out) {
  out[0] = __bfloat162float(__float2bfloat16_rn(x));
  out[1] = __half2float(__float2half(x));
  out[2] = __uint_as_float(pack_bf16(x, 0) << 16);
}

__global__ void raise(const float* x, float* out) { out[threadIdx.x] = exp2_fast(x[threadIdx.x]); }

__global__ void call_functions(const float* four, float* out) {
  const float x = *four;
  out[0] = rsqrtf(x);
  out[1] = __expf(x - 4);
  out[2] = __fdividef(x, 2);
  out[3] = fmaxf(x, -INFINITY);
  out[4] = static_cast<float>(min(static_cast<int>(x), 3) + max(1, 2));
  out[5] = static_cast<float>(__popc(__float_as_uint(-x)));
  out[6] = __ldg(four);
  out[7] = __int_as_float(__float_as_int(x) + (1 << 23));
}

__global__ void load_matrices(const bf16* four, int* out, bool transposed) {
  __shared__ __align__(16) bf16 tile[4 * 64];
  for (unsigned i = threadIdx.x; i < 4 * 64; i += 32) tile[i] = four[i];
  __syncwarp();
  uint32_t r[4];
  if (transposed) {
    ldmatrix_x4_transposed(r, tile + 8 * threadIdx.x);
  } else {
    ldmatrix_x4(r, tile + 8 * threadIdx.x);
  }
  for (unsigned i = 0; i < 4; ++i) {
    out[threadIdx.x * 8 + 2 * i] = static_cast<int>(__uint_as_float(r[i] << 16));
    out[threadIdx.x * 8 + 2 * i + 1] = static_cast<int>(__uint_as_float(r[i] & 0xffff0000u));
  }
}

// The fragments are read by the table in tensor_core.hpp, without ldmatrix.
__global__ void multiply(const bf16* a, const bf16* b_columns, float* c) {
  const unsigned g = threadIdx.x / 4, column = threadIdx.x % 4 * 2;
  const auto pair = [](const bf16* at) { return *reinterpret_cast<const uint32_t*>(at); };
  const uint32_t fragment[4] = {pair(a + 16 * g + column), pair(a + 16 * (g + 8) + column),
                                pair(a + 16 * g + column + 8), pair(a + 16 * (g + 8) + column + 8)};
  float* rows[2] = {c + 8 * g + column, c + 8 * (g + 8) + column};
  float d[4] = {rows[0][0], rows[0][1], rows[1][0], rows[1][1]};
  mma_16x8x16(d, fragment, pair(b_columns + 16 * g + column),
              pair(b_columns + 16 * g + column + 8));
  for (unsigned i = 0; i < 4; ++i) rows[i / 2][i % 2] = d[i];
}

}  // namespace

Shuffles shuffles() {
  DeviceBuffer<int> out(7 * 32);
  T2T_LAUNCH(shuffle, 1, 32, 0, out.data());
  const std::vector<int> all = out.download();
  const auto row = [&](int i) { return std::vector<int>(&all[32 * i], &all[32 * i] + 32); };
  return {row(0), row(1), row(2), row(3), row(4), row(5), row(6)};
}

std::vector<unsigned> votes() {
  DeviceBuffer<unsigned> out(4);
  T2T_LAUNCH(vote, 1, 32, 0, out.data());
  return out.download();
}

std::vector<float> warp_sums(bool doubled) {
  DeviceBuffer<float> out(2);
  if (doubled) {
    T2T_LAUNCH(sum_warps<2>, 1, 64, 0, out.data());
  } else {
    T2T_LAUNCH(sum_warps<1>, 1, 64, 0, out.data());
  }
  return out.download();
}

std::vector<float> rounded(float x) {
  DeviceBuffer<float> out(3);
  T2T_LAUNCH(round_to_16_bits, 1, 1, 0, x, out.data());
  return out.download();
}

std::vector<float> powers_of_two(const std::vector<float>& x) {
  const auto in = uploaded(x);
  DeviceBuffer<float> out(x.size());
  T2T_LAUNCH(raise, 1, static_cast<unsigned>(x.size()), 0, in.data(), out.data());
  return out.download();
}

std::vector<float> functions_of_four() {
  const auto four = uploaded(std::vector<float>{4});
  DeviceBuffer<float> out(8);
  T2T_LAUNCH(call_functions, 1, 1, 0, four.data(), out.data());
  return out.download();
}

std::vector<int> loaded_matrices(const std::vector<bf16>& four, bool transposed) {
  const auto in = uploaded(four);
  DeviceBuffer<int> out(32 * 8);
  T2T_LAUNCH(load_matrices, 1, 32, 0, in.data(), out.data(), transposed);
  return out.download();
}

std::vector<float> multiplied(const std::vector<bf16>& a, const std::vector<bf16>& b_columns,
                              const std::vector<float>& c) {
  const auto left = uploaded(a), right = uploaded(b_columns);
  auto sum = uploaded(c);
  T2T_LAUNCH(multiply, 1, 32, 0, left.data(), right.data(), sum.data());
  return sum.download();
}

}  // namespace t2t
