// The instructions of the tensor cores that our kernels use (sm_80 and later). Under nvcc they are
// PTX; on the stand-in the 32 lanes of a warp exchange their numbers. Numbers are bf16, sums float.
//
// How a warp holds its matrices, with g = lane / 4 and c = 2·(lane % 4):
//   a, 16x16 row-major   a[0]: row g, columns c, c+1     a[1]: row g+8, the same columns
//                        a[2]: row g, columns c+8, c+9   a[3]: row g+8, those columns
//   b, 16x8              b0: rows c, c+1 of column g     b1: rows c+8, c+9
//   d, 16x8 float        d[0], d[1]: row g, columns c, c+1     d[2], d[3]: row g+8
// The first of two numbers in a register is its lower 16 bits.
#pragma once

#include <cstdint>

#include "cuda/kernel.hpp"

#ifndef __CUDACC__

#include "cuda_on_cpu/tensor_core.hpp"

#else

namespace t2t {

/// Two numbers, rounded to nearest even, in one register.
__device__ __forceinline__ std::uint32_t pack_bf16(float low, float high) {
  std::uint32_t packed;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}

/// d += a·b.
__device__ __forceinline__ void mma_16x8x16(float (&d)[4], const std::uint32_t (&a)[4],
                                            std::uint32_t b0, std::uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// Loads four 8x8 matrices from shared memory. Lane 8·i + r passes the address of row r of matrix
/// i. r[i] becomes matrix i's row g, columns c and c+1.
__device__ __forceinline__ void ldmatrix_x4(std::uint32_t (&r)[4], const bf16* row) {
  const auto at = static_cast<std::uint32_t>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(at)
               : "memory");
}

/// The same, transposed: r[i] becomes rows c and c+1 of column g.
__device__ __forceinline__ void ldmatrix_x4_transposed(std::uint32_t (&r)[4], const bf16* row) {
  const auto at = static_cast<std::uint32_t>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(at)
               : "memory");
}

/// 2^x with an error of at most 2 units in the last place; subnormal results become zero.
__device__ __forceinline__ float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

}  // namespace t2t

#endif
