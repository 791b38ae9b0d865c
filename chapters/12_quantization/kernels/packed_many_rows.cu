// A product of many rows with packed weights, by the kernel in chapter 11's many_rows.hpp: a tile
// of weights is unpacked on its way to shared memory, rounded to bf16, which the tensor cores want.
//
// Each block of 128 rows of x unpacks the weights again. This costs arithmetic, but no memory: the
// bytes that come from memory are the packed ones. The other way, to unpack a matrix once into bf16
// in device memory, would write and read 2 bytes for each weight besides, and need room for the
// largest matrix.
//
// The loads of the next tile are issued before the products of this one, but a thread waits for
// them before it multiplies, since it unpacks what they bring. Not measured yet.
#include <cstddef>

#include "11_flash_attention/kernels/model/many_rows.hpp"
#include "12_quantization/kernels/packed_pieces.hpp"
#include "12_quantization/kernels/packed_products.hpp"

namespace t2t {

namespace {

template <DeviceForm form, class Sums>
struct Unpacking : PackedSums<form, Sums> {
  // [fill]
  /// Unpacks columns `column` to `column` + 63 of 64 rows into a swizzled tile. What lies outside
  /// of the matrix becomes 0.
  __device__ __forceinline__ void fill(int m, bf16* tile, int first_out, int column, int in,
                                       int out) const {
    constexpr int of_block = PackedPiece<form>::of_block, of_group = tile_k / 32 * of_block;
    constexpr int pieces = tile_outs / 16 * of_group;
    const int blocks = in / 32, groups = (out + 15) / 16;
    for (int i = threadIdx.x; i < pieces; i += tile_threads) {
      const int p = i % of_block, b = i / of_block % (tile_k / 32), g = i / of_group;
      const int block = column / 32 + b, group = first_out / 16 + g;
      const int row = 16 * g + PackedPiece<form>::row(p),
                first = 32 * b + PackedPiece<form>::column(p);
      if (block < blocks && group < groups)
        unpack(PackedPiece<form>(this->block(m, group, blocks, block), p), tile, row, first);
      else
        clear(tile, row, first);
    }
  }
  // [/fill]

 private:
  static constexpr int parts = PackedPiece<form>::weights / 4;  // of a row: 4 columns, and 4 others

  /// Where 4 columns of row `row`, from a multiple of 4 on, lie in the tile.
  static __device__ __forceinline__ uint2* four(bf16* tile, int row, int column) {
    return reinterpret_cast<uint2*>(tile + swizzled<tile_k>(row, column / 8) + column % 8);
  }
  static __device__ __forceinline__ void unpack(const PackedPiece<form>& w, bf16* tile, int row,
                                                int first) {
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      const float scale = w.scale(r), minimum = w.minimum(r);
      for (int part = 0; part < parts; ++part) {
        float values[4];
        for (int k = 0; k < 4; ++k) values[k] = scale * w.number(r, 4 * part + k) + minimum;
        *four(tile, row + r, first + 16 * part) = {pack_bf16(values[0], values[1]),
                                                   pack_bf16(values[2], values[3])};
      }
    }
  }
  static __device__ __forceinline__ void clear(bf16* tile, int row, int first) {
    for (int r = 0; r < 4; ++r)
      for (int part = 0; part < parts; ++part) *four(tile, row + r, first + 16 * part) = {0, 0};
  }
};

template <class Sums>
void multiply(const bf16* x, DeviceForm form, const unsigned char* const (&w)[Sums::matrices],
              const Sums& sums, int T, int in, int out) {
  with_form(form, w, sums, [&]<DeviceForm known>(const PackedSums<known, Sums>& weights) {
    launch_many_rows(x, Unpacking<known, Sums>{weights}, T, in, out);
  });
}

}  // namespace

void multiply_packed_many(const bf16* x, DeviceForm form, const unsigned char* const (&w)[1],
                          const StoreSums& sums, int T, int in, int out) {
  multiply(x, form, w, sums, T, in, out);
}
void multiply_packed_many(const bf16* x, DeviceForm form, const unsigned char* const (&w)[2],
                          const SwigluSums& sums, int T, int in, int out) {
  multiply(x, form, w, sums, T, in, out);
}
void multiply_packed_many(const bf16* x, DeviceForm form, const unsigned char* const (&w)[1],
                          const AddSums& sums, int T, int in, int out) {
  multiply(x, form, w, sums, T, in, out);
}

}  // namespace t2t
