// Products with packed weights on a GPU. The bytes on the device are those of packed_rows.hpp, in
// its order, and no other copy of the weights is made. Activations are bf16, as in chapter 11, and
// are not rounded to 8 bits: what bounds a product of few rows on a GPU is reading the weights.
//
//   packed_embed     x[t] = row ids[t] of the table, as unpack_row gives it
//   packed_store     y = norm(x)·wᵀ
//   packed_add       y += x·wᵀ
//   packed_swiglu    y = silu(norm(x)·w_gateᵀ) ⊙ (norm(x)·w_upᵀ), rounded to bf16
//
// For up to `few_rows` rows, weights are unpacked in registers and not rounded
// (packed_few_rows.cu). For more, they are unpacked into a tile in shared memory, rounded to bf16
// (packed_many_rows.cu).
//
// All pointers are device memory. Each function throws std::invalid_argument, "in: wanted a
// multiple of 32, got 40", unless sizes are at least 1, `in` and C are multiples of 32, and the
// rest is as in model_kernels.hpp. What ids hold is not checked. nvcc reads this header.
#pragma once

#include "11_flash_attention/kernels/model/model_kernels.hpp"

namespace t2t {

/// The forms of packed_rows.hpp that the kernels know.
enum class DeviceForm { q8_0, q4_0, q4_1 };

/// value = scale · (q − offset) + minimum. A block is 32 weights of each of 16 rows: a head of 16
/// scales and, if the form has them, 16 minima, and then the q.
struct DeviceBlock {
  int bits, offset;
  bool has_minimum;

  constexpr int head_bytes() const { return has_minimum ? 64 : 32; }
  constexpr int bytes() const { return head_bytes() + 16 * 32 * bits / 8; }
};
constexpr DeviceBlock device_block(DeviceForm form) {
  return form == DeviceForm::q8_0   ? DeviceBlock{8, 128, false}
         : form == DeviceForm::q4_0 ? DeviceBlock{4, 8, false}
                                    : DeviceBlock{4, 0, true};
}

/// Groups of 16 rows; those that are missing in the last group are there and hold anything finite.
struct PackedOnDevice {
  DeviceForm form;
  const unsigned char* bytes;  // at a multiple of 16 bytes
};

void launch_packed_embed(const PackedOnDevice& table,  // [V, C]
                         const int* ids,               // [T]
                         int T, int C,
                         float* x);  // [T, C]
void launch_packed_store(const NormedRows& x,
                         const PackedOnDevice& w,  // [out, in]
                         int T, int in, int out,
                         float* y);              // [T, out]
void launch_packed_add(const bf16* x,            // [T, in]
                       const PackedOnDevice& w,  // [out, in]
                       int T, int in, int out,
                       float* y);  // [T, out]
/// Both matrices must have one form.
void launch_packed_swiglu(const NormedRows& x,
                          const PackedOnDevice& w_gate,  // [out, in]
                          const PackedOnDevice& w_up,    // [out, in]
                          int T, int in, int out,
                          bf16* y);  // [T, out]

}  // namespace t2t
