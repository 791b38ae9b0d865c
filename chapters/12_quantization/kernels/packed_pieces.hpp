// A thread's share of a block of 16 rows: 16 bytes, which are 4 rows of 4 weights with 8 bits, or
// of 8 with 4 bits. packed_few_rows.cu and packed_many_rows.cu share it.
//
// PackedPiece p of a block begins at byte 16·p behind its head. It belongs to rows 4·(p % 4) to
// 4·(p % 4)
// + 3, and has a word for each: its byte i is weight 4·(p / 4) + i of the row. With 4 bits, that is
// the low half of the byte, and the high half is weight 16 + 4·(p / 4) + i. Neighbouring lanes read
// neighbouring pieces, and a warp reads 512 neighbouring bytes at once.
#pragma once

#include "11_flash_attention/kernels/model/epilogues.hpp"
#include "12_quantization/kernels/packed_kernels.hpp"
#include "cuda/kernel.hpp"

namespace t2t {

/// 4 F16 that are read together.
struct alignas(8) FourHalves {
  half at[4];
};

template <DeviceForm form>
struct PackedPiece {
  static constexpr DeviceBlock block = device_block(form);
  static constexpr int of_block = 32 * block.bits / 8;  // pieces of 16 bytes
  static constexpr int weights = 32 / block.bits;       // of each row: 4 or 8

  unsigned words[4];
  FourHalves scales, minima;

  /// Reads piece p of the block that begins at `from`.
  __device__ __forceinline__ PackedPiece(const unsigned char* from, int p) {
    const uint4 read = *reinterpret_cast<const uint4*>(from + block.head_bytes() + 16 * p);
    words[0] = read.x, words[1] = read.y, words[2] = read.z, words[3] = read.w;
    const FourHalves* head = reinterpret_cast<const FourHalves*>(from);
    scales = head[p % 4];
    if constexpr (block.has_minimum) minima = head[4 + p % 4];
  }

  /// Where the first weight of piece p lies in its block, and weight k from there on.
  static __device__ __forceinline__ int row(int p) { return 4 * (p % 4); }
  static __device__ __forceinline__ int column(int p) { return 4 * (p / 4); }
  static constexpr __device__ __forceinline__ int column_of(int k) { return 16 * (k / 4) + k % 4; }

  /// q − offset of weight k of row r, both counted in the piece.
  __device__ __forceinline__ float number(int r, int k) const {
    const unsigned q = words[r] >> (8 * (k % 4) + 4 * (k / 4)) & ((1u << block.bits) - 1);
    return float(int(q) - block.offset);
  }
  __device__ __forceinline__ float scale(int r) const { return __half2float(scales.at[r]); }
  __device__ __forceinline__ float minimum(int r) const {
    return block.has_minimum ? __half2float(minima.at[r]) : 0;
  }
};

/// Packed matrices that are multiplied by the same rows, and what becomes of their sums (StoreSums,
/// AddSums or SwigluSums, whose own matrices are not used).
template <DeviceForm form, class Sums>
struct PackedSums {
  static constexpr int matrices = Sums::matrices;
  const unsigned char* w[matrices];  // [out, in]
  Sums sums;

  /// Block b of a group of rows, where each row has so many blocks.
  __device__ __forceinline__ const unsigned char* block(int m, int group, int blocks, int b) const {
    return w[m] + (std::size_t(group) * blocks + b) * device_block(form).bytes();
  }
  __device__ void store(std::size_t at, const float (&of_element)[matrices]) const {
    sums.store(at, of_element);
  }
};

/// Calls multiply(weights) with the weights' form as a constant.
template <class Sums, class Multiply>
void with_form(DeviceForm form, const unsigned char* const (&w)[Sums::matrices], const Sums& sums,
               const Multiply& multiply) {
  const auto call = [&]<DeviceForm known>() {
    PackedSums<known, Sums> weights{{}, sums};
    for (int m = 0; m < Sums::matrices; ++m) weights.w[m] = w[m];
    multiply(weights);
  };
  if (form == DeviceForm::q8_0) return call.template operator()<DeviceForm::q8_0>();
  if (form == DeviceForm::q4_0) return call.template operator()<DeviceForm::q4_0>();
  call.template operator()<DeviceForm::q4_1>();
}

}  // namespace t2t
