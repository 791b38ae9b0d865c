// A product of few rows: each weight is used a few times only, so its time is that of reading the
// weights from memory.
//
// Changed from product_kernel.cu: weights are bf16, half the bytes. A warp computes an element of
// the result: its lanes read 512 neighbouring bytes of a row of weights at once, 16 each, and
// shuffles add their sums. The row of x is in shared memory. If x is the residual stream, each
// block computes its norm itself, which takes less time than a kernel of its own: a block reads a
// few kilobytes from L2, and a launch takes microseconds. A block goes on to further rows of
// weights, so that the norm is computed by 8 blocks of a multiprocessor at most.
#include <algorithm>
#include <cstddef>

#include "04_causal_attention/kernels/warp_reduce.hpp"
#include "11_flash_attention/kernels/model/epilogues.hpp"
#include "11_flash_attention/kernels/model/norm_row.hpp"
#include "11_flash_attention/kernels/model/products.hpp"
#include "cuda/device.hpp"
#include "cuda/kernel.hpp"

namespace t2t {

namespace {

constexpr int warps = product_warps, threads = product_threads;

/// sum += x·w of two elements, the lower one first.
__device__ __forceinline__ void add_two(float& sum, unsigned x, unsigned w) {
  sum += __uint_as_float(x << 16) * __uint_as_float(w << 16);
  sum += __uint_as_float(x & 0xffff0000) * __uint_as_float(w & 0xffff0000);
}
__device__ __forceinline__ void add_eight(float& sum, const uint4& x, const uint4& w) {
  add_two(sum, x.x, w.x), add_two(sum, x.y, w.y);
  add_two(sum, x.z, w.z), add_two(sum, x.w, w.w);
}

// [kernel]
/// The grid is [any number of blocks, T].
template <class Input, class Epilogue>
__global__ void multiply_few_rows(Input input, Epilogue epilogue, int in, int out) {
  T2T_DYNAMIC_SHARED(bf16, x);  // [in], row blockIdx.y
  input.load(blockIdx.y, in, x);
  __syncthreads();

  const int lane = threadIdx.x % 32;
  for (int o = blockIdx.x * warps + threadIdx.x / 32; o < out; o += gridDim.x * warps) {
    float sums[Epilogue::matrices] = {};
#pragma unroll 4
    for (int c = 8 * lane; c < in; c += 8 * 32)
#pragma unroll
      for (int m = 0; m < Epilogue::matrices; ++m)
        add_eight(sums[m], *reinterpret_cast<const uint4*>(x + c),
                  *reinterpret_cast<const uint4*>(epilogue.weights(m) + std::size_t(o) * in + c));
#pragma unroll
    for (int m = 0; m < Epilogue::matrices; ++m) sums[m] = warp_sum(sums[m]);
    if (lane == 0) epilogue.store(std::size_t(blockIdx.y) * out + o, sums);
  }
}
// [/kernel]

template <class Input, class Epilogue>
void launch_few(const Input& input, const Epilogue& epilogue, int T, int in, int out) {
  const int blocks =
      std::min((out + warps - 1) / warps, product_blocks_per_multiprocessor * multiprocessors());
  T2T_LAUNCH((multiply_few_rows<Input, Epilogue>), dim3(unsigned(blocks), unsigned(T)),
             dim3(threads), std::size_t(in) * sizeof(bf16), input, epilogue, in, out);
}

}  // namespace

void multiply_few(const NormedRows& x, const StoreSums& epilogue, int T, int in, int out) {
  launch_few(NormedInput{x}, epilogue, T, in, out);
}
void multiply_few(const NormedRows& x, const SwigluSums& epilogue, int T, int in, int out) {
  launch_few(NormedInput{x}, epilogue, T, in, out);
}
void multiply_few(const bf16* x, const AddSums& epilogue, int T, int in, int out) {
  launch_few(PlainInput{x}, epilogue, T, in, out);
}

}  // namespace t2t
