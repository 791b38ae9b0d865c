// Products of matrices by a warpgroup, four warps (wgmma, sm_90 alone): 64 rows of a, by 16
// channels, times N columns of b. b, and usually a, is read from tiles in shared memory
// (tensor_map.hpp says how they lie), beside the threads: from the product's issue until the wait
// for it. Numbers are bf16, sums float.
//
// Warp w of a warpgroup holds rows 16·w … 16·w + 15 of the sums, as mma_16x8x16 (tensor_core.hpp)
// holds its 16 rows: sums[n] are columns 8·n … 8·n + 7.
//
// Such a kernel must be launched with whole warpgroups, and on compute capability 9.0 alone: for
// other GPUs its body must be empty (T2T_WARPGROUPS is 0 there).
#pragma once

#ifndef __CUDACC__

#include "cuda_on_cpu/hopper/warpgroup.hpp"

#define T2T_WARPGROUPS 1

#else

#include <cstdint>
#include <type_traits>

#include "cuda/kernel.hpp"
#include "cuda/mbarrier.hpp"

#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define T2T_WARPGROUPS 1
#else
#define T2T_WARPGROUPS 0
#endif

namespace t2t {

/// Whether this lane is the one of its warp that issues copies.
__device__ __forceinline__ bool elected() {
  std::uint32_t is;
  asm volatile("{\n.reg .pred p;\nelect.sync _|p, 0xffffffff;\nselp.u32 %0, 1, 0, p;\n}"
               : "=r"(is));
  return is != 0;
}

/// setmaxnreg: all threads of a warpgroup give registers back to their block, or wait until the
/// block has enough of them. Afterwards each thread has `Registers`. The kernel needs
/// __launch_bounds__.
template <int Registers>
__device__ __forceinline__ void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Registers));
}
template <int Registers>
__device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Registers));
}

namespace detail {

__device__ __forceinline__ std::uint64_t describe(const bf16* tile, unsigned leading_bytes,
                                                  unsigned stride_bytes) {
  constexpr std::uint64_t swizzle_of_128_bytes = 1ull << 62;
  return std::uint64_t{shared_address(tile) >> 4 & 0x3fff} |
         std::uint64_t{leading_bytes >> 4} << 16 | std::uint64_t{stride_bytes >> 4} << 32 |
         swizzle_of_128_bytes;
}

/// Tells the compiler that these registers may have changed here.
template <class Number, int Blocks>
__device__ __forceinline__ void pin(Number (&registers)[Blocks][4]) {
#pragma unroll
  for (int n = 0; n < Blocks; ++n) {
    for (int i = 0; i < 4; ++i) {
      if constexpr (std::is_same_v<Number, float>) {
        asm volatile("" : "+f"(registers[n][i])::"memory");
      } else {
        asm volatile("" : "+r"(registers[n][i])::"memory");
      }
    }
  }
}

}  // namespace detail

/// The descriptor of a tile whose rows are the product's rows (of a) or columns (of b), and whose
/// 64 channels are summed over. 16 channels further on, it is 2 more; a tile of R rows further,
/// 8·R.
__device__ __forceinline__ std::uint64_t rows_of_channels(const bf16* tile) {
  return detail::describe(tile, 16, 1024);
}
/// The descriptor of a tile of `rows` rows that are summed over, and whose channels are the columns
/// of b. 16 rows further on, it is 128 more.
__device__ __forceinline__ std::uint64_t channels_of_rows(const bf16* tile, int rows) {
  return detail::describe(tile, 128 * static_cast<unsigned>(rows), 1024);
}

/// Before the first product after the sums, or a in registers, were touched by anything else. Names
/// these arrays.
template <class Sums>
__device__ __forceinline__ void begin_products(Sums& sums) {
  detail::pin(sums);
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
template <class Sums, class More>
__device__ __forceinline__ void begin_products(Sums& sums, More& more) {
  detail::pin(more);
  begin_products(sums);
}
/// Makes one group of the products that this warp has issued since its last commit.
__device__ __forceinline__ void commit_products() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
/// Waits until at most `Pending` groups are pending. Names the arrays that may be read from then
/// on.
template <int Pending, class Sums>
__device__ __forceinline__ void wait_for_products(Sums& sums) {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory");
  detail::pin(sums);
}
template <int Pending, class Sums, class More>
__device__ __forceinline__ void wait_for_products(Sums& sums, More& more) {
  wait_for_products<Pending>(sums);
  detail::pin(more);
}

#define T2T_SUMS_1(d, n) "+f"(d[n][0]), "+f"(d[n][1]), "+f"(d[n][2]), "+f"(d[n][3])
#define T2T_SUMS_4(d, n) \
  T2T_SUMS_1(d, n), T2T_SUMS_1(d, n + 1), T2T_SUMS_1(d, n + 2), T2T_SUMS_1(d, n + 3)

#define T2T_REGISTERS_64                                                                    \
  "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23," \
  "%24,%25,%26,%27,%28,%29,%30,%31}"
#define T2T_REGISTERS_128                                                                    \
  "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,"  \
  "%24,%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45," \
  "%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63}"

/// sums = a·bᵀ, or sums += a·bᵀ if Adds; 16 channels of both.
template <bool Adds>
__device__ __forceinline__ void multiply(float (&sums)[8][4], std::uint64_t a, std::uint64_t b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " T2T_REGISTERS_64
               ", %32, %33, %34, 1, 1, 0, 0;"
               : T2T_SUMS_4(sums, 0), T2T_SUMS_4(sums, 4)
               : "l"(a), "l"(b), "n"(int(Adds)));
}
/// sums += a·b with a in registers, as mma_16x8x16 has it, and 16 rows of b.
__device__ __forceinline__ void multiply(float (&sums)[8][4], const std::uint32_t (&a)[4],
                                         std::uint64_t b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " T2T_REGISTERS_64
               ", {%32, %33, %34, %35}, %36, 1, 1, 1, 1;"
               : T2T_SUMS_4(sums, 0), T2T_SUMS_4(sums, 4)
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}
/// sums = a·bᵀ, or sums += a·bᵀ if Adds; 16 channels of both.
template <bool Adds>
__device__ __forceinline__ void multiply(float (&sums)[16][4], std::uint64_t a, std::uint64_t b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 " T2T_REGISTERS_128
               ", %64, %65, %66, 1, 1, 0, 0;"
               : T2T_SUMS_4(sums, 0), T2T_SUMS_4(sums, 4), T2T_SUMS_4(sums, 8), T2T_SUMS_4(sums, 12)
               : "l"(a), "l"(b), "n"(int(Adds)));
}
/// sums += a·b with a in registers, as mma_16x8x16 has it, and 16 rows of b.
__device__ __forceinline__ void multiply(float (&sums)[16][4], const std::uint32_t (&a)[4],
                                         std::uint64_t b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 " T2T_REGISTERS_128
               ", {%64, %65, %66, %67}, %68, 1, 1, 1, 1;"
               : T2T_SUMS_4(sums, 0), T2T_SUMS_4(sums, 4), T2T_SUMS_4(sums, 8), T2T_SUMS_4(sums, 12)
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

#undef T2T_SUMS_1
#undef T2T_SUMS_4
#undef T2T_REGISTERS_64
#undef T2T_REGISTERS_128

}  // namespace t2t

#endif
