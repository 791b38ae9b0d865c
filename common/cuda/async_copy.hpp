// Asynchronous copies of 16 bytes from global to shared memory, without registers (cp.async, from
// sm_80 on). A thread issues copies, commits them as a group, and later waits until at most so many
// of its groups are pending. Other threads see the copied data after a barrier. On the stand-in
// what is read too early is NaN.
#pragma once

#ifndef __CUDACC__

#include "cuda_on_cpu/async_copy.hpp"

#else

namespace t2t {

/// Copies 16 bytes. When not inside, it writes zeros and does not read.
__device__ __forceinline__ void copy_async_16(void* shared, const void* global,
                                              bool inside = true) {
  const auto to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(global),
               "r"(inside ? 16 : 0)
               : "memory");
}

/// Makes one group of the copies that this thread has issued since its last commit.
__device__ __forceinline__ void commit_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

/// Waits until at most `Pending` of this thread's groups are pending.
template <int Pending>
__device__ __forceinline__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
}

}  // namespace t2t

#endif
