// A row that a block of 4 or 8 warps shares. Each warp keeps up to 1024 elements in registers
// (warp_row.hpp), so that a block reads a row of up to 4096 or 8192 elements once. The norms and
// softmax share this file.
//
// Each warp processes one part of the row and sums it up as it would a whole row. The warps
// exchange their sums through shared memory, and every thread adds them up in the same order. A row
// of up to 1024 elements stays with one warp, which needs no barrier. Never run on a GPU with more
// than one warp for a row.
#pragma once

#include <type_traits>

#include "04_causal_attention/kernels/warp_reduce.hpp"
#include "cuda/kernel.hpp"

namespace t2t {

/// The block has `Warps` warps for one row, or four rows with one warp each.
template <int Warps>
constexpr int warps_of_block = Warps == 1 ? 4 : Warps;

/// Elements `first` to first + size − 1 of row t.
struct RowPart {
  long t;
  int first, size;
};
// [part]
/// This warp's part of a row of C elements. All parts but the last have the same size, a multiple
/// of 32 elements, so that the loads of all warps are aligned if those of the row are.
template <int Warps>
__device__ __forceinline__ RowPart own_part(int C) {
  const int warp = threadIdx.x / 32;
  if constexpr (Warps == 1) {
    return {long(blockIdx.x) * warps_of_block<1> + warp, 0, C};
  } else {
    const int most = ((C - 1) / (32 * Warps) + 1) * 32, first = min(warp * most, C);
    return {long(blockIdx.x), first, min(most, C - first)};
  }
}

/// combine(…) of all warps' numbers, of the first warp's first. All threads of the block must call
/// it if there are several warps.
template <int Warps, class Combine>
__device__ __forceinline__ float over_warps(float of_warp, float (&of_warps)[Warps],
                                            Combine combine) {
  if constexpr (Warps == 1) {
    return of_warp;
  } else {
    if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = of_warp;
    __syncthreads();  // all warps' numbers are there
    float all = of_warps[0];
    for (int warp = 1; warp < Warps; ++warp) all = combine(all, of_warps[warp]);
    __syncthreads();  // all threads have read them, before the next ones take their place
    return all;
  }
}

/// The sum, or the highest, of all lanes of a row. of_warps is shared memory.
template <int Warps>
__device__ __forceinline__ float row_sum(float of_lane, float (&of_warps)[Warps]) {
  return over_warps(warp_sum(of_lane), of_warps, [](float a, float b) { return a + b; });
}
template <int Warps>
__device__ __forceinline__ float row_max(float of_lane, float (&of_warps)[Warps]) {
  return over_warps(warp_max(of_lane), of_warps, [](float a, float b) { return fmaxf(a, b); });
}
// [/part]

/// Calls launch with the number of warps that keep a row of C elements in registers, as a type: 1,
/// 4 or 8. With more than 8192 elements, 8 warps read the row again for each use.
template <class Launch>
void launch_for_row(int C, const Launch& launch) {
  constexpr int of_warp = 1024;
  if (C <= of_warp)
    launch(std::integral_constant<int, 1>());
  else if (C <= 4 * of_warp)
    launch(std::integral_constant<int, 4>());
  else
    launch(std::integral_constant<int, 8>());
}

/// The blocks for T rows, and their threads.
template <int Warps>
dim3 blocks_of_rows(int T) {
  constexpr unsigned rows = warps_of_block<Warps> / Warps;
  return dim3((unsigned(T) + rows - 1) / rows);
}
template <int Warps>
dim3 threads_of_rows() {
  return dim3(32 * warps_of_block<Warps>);
}

}  // namespace t2t
