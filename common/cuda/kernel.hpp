// What the source of a kernel includes. Two compilers build it: nvcc for a GPU, and the C++
// compiler for the stand-in, which runs each CUDA thread as a fiber on the CPU and reports mistakes
// that a GPU does not. Kernels use CUDA's own names, and the macros below. Tensor cores:
// tensor_core.hpp; asynchronous copies: async_copy.hpp; Hopper's barriers, tiles and warpgroups:
// mbarrier.hpp, bulk_copy.hpp, warpgroup.hpp.
//
//   T2T_LAUNCH(kernel, grid, block, shared_bytes, args...)   kernel<<<...>>>; throws
//                                                            std::runtime_error with the place
//   T2T_DYNAMIC_SHARED(T, name);                             T* name: the block's dynamic shared
//                                                            memory, 16-byte aligned; used once in
//                                                            a kernel
//   T2T_DYNAMIC_TILES(T, name);                              the same, 1024-byte aligned, for tiles
//                                                            (bulk_copy.hpp)
//
// A kernel whose template arguments have a comma stands in parentheses:
//   T2T_LAUNCH((flash<64, true>), grid, block, 0, q, k)
#pragma once

#ifdef __CUDACC__

#include <cuda_runtime.h>

#include "cuda/half_types.hpp"
#include "cuda/launch_gpu.hpp"

#define T2T_DYNAMIC_SHARED(T, name)                                   \
  extern __shared__ __align__(16) unsigned char t2t_dynamic_shared[]; \
  T* name = reinterpret_cast<T*>(t2t_dynamic_shared)
#define T2T_DYNAMIC_TILES(T, name)                                     \
  extern __shared__ __align__(1024) unsigned char t2t_dynamic_tiles[]; \
  T* name = reinterpret_cast<T*>(t2t_dynamic_tiles)

namespace t2t {

/// bar.sync: waits until `threads` of the block's threads wait at barrier `id`, 1 to 15.
__device__ __forceinline__ void barrier_sync(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
/// bar.arrive: counts at barrier `id` as one of the `threads` that it waits for, and goes on.
__device__ __forceinline__ void barrier_arrive(int id, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

}  // namespace t2t

#else

#include "cuda/half_types.hpp"
#include "cuda_on_cpu/intrinsics.hpp"
#include "cuda_on_cpu/launch.hpp"
#include "cuda_on_cpu/vector_types.hpp"
#include "cuda_on_cpu/warp_operations.hpp"

#endif

#define T2T_LAUNCH(kernel, grid, block, shared_bytes, ...)              \
  ::t2t::launch({#kernel, __FILE__, __LINE__}, kernel, (grid), (block), \
                (shared_bytes)__VA_OPT__(, ) __VA_ARGS__)
