// Instructions of the tensor cores (sm_80 and later), for which the 32 lanes of a warp exchange
// their numbers. Numbers are bf16, sums float. Each lane holds those numbers of a matrix that
// NVIDIA's PTX manual gives it at mma.m16n8k16 and at ldmatrix. The first of two numbers in a
// register is its lower 16 bits.
#pragma once

#include <math.h>

#include <cstdint>

#include "cuda_on_cpu/half_types.hpp"
#include "cuda_on_cpu/stand_in.hpp"

namespace t2t {
namespace stand_in {

/// The addresses of the 8 rows of four 8x8 matrices.
struct MatrixRows {
  const __nv_bfloat16* row[32];
};
MatrixRows gather_rows(const __nv_bfloat16* row, const Place& place);

/// For the race detector: CUDA does not say which lane reads a row, so the lane that passes its
/// address counts as a reader, too.
inline void read_row([[maybe_unused]] const __nv_bfloat16* row) {
#ifdef __SANITIZE_THREAD__
  for (int i = 0; i < 8; ++i)
    static_cast<void>(*static_cast<const volatile std::uint16_t*>(&row[i].bits));
#endif
}

}  // namespace stand_in

/// Two numbers, rounded to nearest even, in one register.
inline std::uint32_t pack_bf16(float low, float high) {
  return __float2bfloat16_rn(low).bits | std::uint32_t{__float2bfloat16_rn(high).bits} << 16;
}

/// d += a·b, with a 16x16, b 16x8 and d 16x8.
void mma_16x8x16(float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1,
                 stand_in::Place place = stand_in::Place::current());

/// Loads four 8x8 matrices from shared memory. Lane 8·i + r passes the address of row r of matrix
/// i. With g = lane / 4 and c = 2·(lane % 4), r[i] becomes matrix i's row g, columns c and c+1.
/// Each lane reads its own numbers, so that the sanitizers see the access.
inline void ldmatrix_x4(std::uint32_t (&r)[4], const __nv_bfloat16* row,
                        stand_in::Place place = stand_in::Place::current()) {
  const stand_in::MatrixRows rows = stand_in::gather_rows(row, place);
  stand_in::read_row(row);
  const unsigned lane = stand_in::lane();
  for (unsigned i = 0; i < 4; ++i) {
    const __nv_bfloat16* pair = rows.row[8 * i + lane / 4] + lane % 4 * 2;
    r[i] = pair[0].bits | std::uint32_t{pair[1].bits} << 16;
  }
}

/// The same, transposed: r[i] becomes rows c and c+1 of column g.
inline void ldmatrix_x4_transposed(std::uint32_t (&r)[4], const __nv_bfloat16* row,
                                   stand_in::Place place = stand_in::Place::current()) {
  const stand_in::MatrixRows rows = stand_in::gather_rows(row, place);
  stand_in::read_row(row);
  const unsigned lane = stand_in::lane();
  for (unsigned i = 0; i < 4; ++i) {
    const __nv_bfloat16* const* pair = rows.row + 8 * i + lane % 4 * 2;
    r[i] = pair[0][lane / 4].bits | std::uint32_t{pair[1][lane / 4].bits} << 16;
  }
}

/// 2^x; subnormal results become zero.
inline float exp2_fast(float x) {
  const float y = exp2f(x);
  return y < 0x1p-126f ? 0.0f : y;
}

}  // namespace t2t
