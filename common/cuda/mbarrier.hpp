// Barriers in shared memory that count arrivals and bytes (mbarrier, as sm_90 and later have it). A
// barrier is in one phase at a time. The phase ends when all arrivals have come and all expected
// bytes have landed; then the next one begins. A wait names the phase by its parity: 0 for the
// first phase, 1 for the second, then 0 again. A ring of `stages` tiles uses stage i % stages in
// step i, so its readers wait for parity i / stages % 2.
//
// Kernels are compiled for older GPUs, too. There T2T_TILES is 0, and a kernel that uses these
// barriers or copies of tiles must be empty.
#pragma once

#ifndef __CUDACC__

#include "cuda_on_cpu/hopper/mbarrier.hpp"

#define T2T_TILES 1

#else

#include <cstdint>

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
#define T2T_TILES 1
#else
#define T2T_TILES 0
#endif

namespace t2t {

struct __align__(8) Mbarrier {
  std::uint64_t state;
};

namespace detail {

__device__ __forceinline__ std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

}  // namespace detail

/// One thread initializes the barrier for phases of `arrivals` arrivals, then calls
/// mbarrier_init_fence; __syncthreads tells the others.
__device__ __forceinline__ void mbarrier_init(Mbarrier& barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(detail::shared_address(&barrier)),
               "r"(arrivals)
               : "memory");
}
__device__ __forceinline__ void mbarrier_init_fence() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ __forceinline__ void mbarrier_arrive(Mbarrier& barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(detail::shared_address(&barrier))
               : "memory");
}
/// Arrives, and lets the phase wait for `bytes` more bytes. They land by load_box (bulk_copy.hpp).
__device__ __forceinline__ void mbarrier_arrive_expect(Mbarrier& barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                   detail::shared_address(&barrier)),
               "r"(bytes)
               : "memory");
}

/// Waits until the phase of this parity, 0 or 1, has ended.
__device__ __forceinline__ void mbarrier_wait(const Mbarrier& barrier, int parity) {
  std::uint32_t has_ended = 0;
  while (has_ended == 0) {
    asm volatile(
        "{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
        "selp.u32 %0, 1, 0, p;\n}"
        : "=r"(has_ended)
        : "r"(detail::shared_address(&barrier)), "r"(parity)
        : "memory");
  }
}

}  // namespace t2t

#endif
