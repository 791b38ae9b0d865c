// Copies of whole tiles between global and shared memory, which the hardware carries out beside the
// threads (TMA, sm_90 and later): one thread issues a copy, and a barrier in shared memory counts
// the bytes that have landed. On the stand-in, a tile holds NaN until its copy has landed.
#pragma once

#include "cuda/mbarrier.hpp"
#include "cuda/tensor_map.hpp"

#ifndef __CUDACC__

#include "cuda_on_cpu/hopper/bulk_copy.hpp"

#else

namespace t2t {

/// The first token of a box, its head, and its sequence.
struct BoxAt {
  int token, head, sequence;
};

/// Issued by one thread: copies a box to `tile`, which begins at a multiple of 1024 bytes of
/// dynamic shared memory. Tokens outside of the tensor become zeros, and all bytes of the box land
/// at the barrier.
__device__ __forceinline__ void load_box(bf16* tile, const TensorMap& map, BoxAt at,
                                         Mbarrier& full) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%3, %4, %5, %6, %7}], [%2];" ::"r"(detail::shared_address(tile)),
      "l"(&map), "r"(detail::shared_address(&full)), "r"(0), "r"(at.token), "r"(0), "r"(at.head),
      "r"(at.sequence)
      : "memory");
}

/// Issued by one thread: copies a tile to global memory, without the tokens outside of the tensor.
__device__ __forceinline__ void store_box(const TensorMap& map, BoxAt at, const bf16* tile) {
  asm volatile(
      "cp.async.bulk.tensor.5d.global.shared::cta.tile.bulk_group "
      "[%0, {%2, %3, %4, %5, %6}], [%1];" ::"l"(&map),
      "r"(detail::shared_address(tile)), "r"(0), "r"(at.token), "r"(0), "r"(at.head),
      "r"(at.sequence)
      : "memory");
}
/// Makes one group of the stores that this thread has issued since its last commit.
__device__ __forceinline__ void commit_stores() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
/// Waits until at most `Pending` of this thread's groups still read their tiles.
template <int Pending>
__device__ __forceinline__ void wait_for_stores_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(Pending) : "memory");
}

/// Each thread that has written to a tile calls this, before a barrier, so that a store or a
/// product of matrices may read the tile.
__device__ __forceinline__ void fence_async() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

}  // namespace t2t

#endif
