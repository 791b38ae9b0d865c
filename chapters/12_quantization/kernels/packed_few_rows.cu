// A product of few rows with packed weights: its time should be that of reading the weights, of
// which there are 34 bytes for 32 (Q8_0), 18 (Q4_0) or 20 (Q4_1) where bf16 has 64. Not measured
// yet.
//
// Changed from few_rows.cu of chapter 11: the packed order has 16 rows together, and so has a block
// of threads. Its 8 warps share the columns, and their sums are added in shared memory, in order. A
// lane reads 16 bytes of q, which are 4 rows, and their 4 scales. It multiplies x by the integers q
// − offset and each piece's sum by the scale, so that a scale takes one multiplication for 4 or 8
// weights and no weight is rounded. Lanes with the same rows are added by shuffles at the end.
#include <algorithm>
#include <cstddef>

#include "11_flash_attention/kernels/model/norm_row.hpp"
#include "12_quantization/kernels/packed_pieces.hpp"
#include "12_quantization/kernels/packed_products.hpp"
#include "cuda/device.hpp"

namespace t2t {

namespace {

constexpr int group_rows = 16;

/// 4 neighbouring elements of x.
__device__ __forceinline__ void read_four(const bf16* x, float* to) {
  const uint2 two = *reinterpret_cast<const uint2*>(x);
  to[0] = __uint_as_float(two.x << 16), to[1] = __uint_as_float(two.x & 0xffff0000);
  to[2] = __uint_as_float(two.y << 16), to[3] = __uint_as_float(two.y & 0xffff0000);
}

// [piece]
/// sums[r] += x·w of a piece, whose first column is x's first.
template <DeviceForm form>
__device__ __forceinline__ void add_piece(float (&sums)[4], const PackedPiece<form>& w,
                                          const bf16* x) {
  constexpr int count = PackedPiece<form>::weights;
  float inputs[count], of_inputs = 0;
#pragma unroll
  for (int k = 0; k < count; k += 4) read_four(x + PackedPiece<form>::column_of(k), inputs + k);
  if constexpr (PackedPiece<form>::block.has_minimum)
    for (int k = 0; k < count; ++k) of_inputs += inputs[k];
#pragma unroll
  for (int r = 0; r < 4; ++r) {
    float sum = 0;
    for (int k = 0; k < count; ++k) sum += inputs[k] * w.number(r, k);
    sums[r] += w.scale(r) * sum;
    if constexpr (PackedPiece<form>::block.has_minimum) sums[r] += w.minimum(r) * of_inputs;
  }
}
// [/piece]

// [kernel]
/// The grid is [any number of blocks, T].
template <DeviceForm form, class Input, class Sums>
__global__ void multiply_packed_rows(Input input, PackedSums<form, Sums> weights, int in, int out) {
  constexpr int matrices = Sums::matrices, of_block = PackedPiece<form>::of_block;
  constexpr int at_once = 32 / of_block;  // blocks that a warp reads at once
  T2T_DYNAMIC_SHARED(bf16, x);            // [in], row blockIdx.y
  __shared__ float of_warps[matrices][product_warps][group_rows];
  input.load(blockIdx.y, in, x);
  __syncthreads();

  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, piece = lane % of_block;
  const int blocks = in / 32, groups = (out + group_rows - 1) / group_rows;
  for (int group = blockIdx.x; group < groups; group += gridDim.x) {
    float sums[matrices][4] = {};
    for (int b = warp * at_once + lane / of_block; b < blocks; b += product_warps * at_once)
#pragma unroll
      for (int m = 0; m < matrices; ++m)
        add_piece(sums[m], PackedPiece<form>(weights.block(m, group, blocks, b), piece),
                  x + 32 * b + PackedPiece<form>::column(piece));

        // Lanes 0 to 3 get the sums of all lanes with their rows, and 16 threads those of all
        // warps.
#pragma unroll
    for (int m = 0; m < matrices; ++m)
      for (int r = 0; r < 4; ++r) {
        float& sum = sums[m][r];
        for (int apart = 4; apart < 32; apart *= 2) sum += __shfl_xor_sync(~0u, sum, apart);
        if (lane < 4) of_warps[m][warp][PackedPiece<form>::row(lane) + r] = sum;
      }
    __syncthreads();
    const int o = group * group_rows + threadIdx.x;
    if (threadIdx.x < group_rows && o < out) {
      float of_element[matrices] = {};
      for (int m = 0; m < matrices; ++m)
        for (int of = 0; of < product_warps; ++of) of_element[m] += of_warps[m][of][threadIdx.x];
      weights.store(std::size_t(blockIdx.y) * out + o, of_element);
    }
    __syncthreads();  // before the next group's sums take their place
  }
}
// [/kernel]

template <class Input, class Sums>
void launch_few(const Input& input, DeviceForm form,
                const unsigned char* const (&w)[Sums::matrices], const Sums& sums, int T, int in,
                int out) {
  const int blocks = std::min((out + group_rows - 1) / group_rows,
                              product_blocks_per_multiprocessor * multiprocessors());
  with_form(form, w, sums, [&]<DeviceForm known>(const PackedSums<known, Sums>& weights) {
    T2T_LAUNCH((multiply_packed_rows<known, Input, Sums>), dim3(unsigned(blocks), unsigned(T)),
               dim3(product_threads), std::size_t(in) * sizeof(bf16), input, weights, in, out);
  });
}

}  // namespace

void multiply_packed_few(const NormedRows& x, DeviceForm form, const unsigned char* const (&w)[1],
                         const StoreSums& sums, int T, int in, int out) {
  launch_few(NormedInput{x}, form, w, sums, T, in, out);
}
void multiply_packed_few(const NormedRows& x, DeviceForm form, const unsigned char* const (&w)[2],
                         const SwigluSums& sums, int T, int in, int out) {
  launch_few(NormedInput{x}, form, w, sums, T, in, out);
}
void multiply_packed_few(const bf16* x, DeviceForm form, const unsigned char* const (&w)[1],
                         const AddSums& sums, int T, int in, int out) {
  launch_few(PlainInput{x}, form, w, sums, T, in, out);
}

}  // namespace t2t
