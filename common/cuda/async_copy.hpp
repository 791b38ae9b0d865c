// Asynchronous copies of 16 bytes from global to shared memory, past the registers (cp.async, from
// sm_80 on). A thread issues copies, commits what it has issued as a group, and later waits until
// at most so many of its groups are still on their way. Other threads see what has come after a
// barrier.
//
// On the stand-in a destination holds NaN bytes from the copy's issue to its wait: who reads too
// early, or overwrites a tile that is still being read, gets wrong numbers every time.
#pragma once

#ifndef __CUDACC__
#include <vector>

#include "cuda_on_cpu/stand_in.hpp"
#include "cuda_on_cpu/vector_types.hpp"

namespace t2t {
namespace stand_in {

struct PendingCopy {
  uint4* to;
  uint4 value;
};

/// Notes a copy; refuses addresses that are not multiples of 16.
void issue_copy(void* shared, const void* global, const Place& place);
/// What the copy last issued will bring.
PendingCopy& last_copy();
void commit_group();
/// The copies of all groups but the last `pending`; they are then no longer on their way.
std::vector<PendingCopy> take_arrived(int pending);

}  // namespace stand_in

/// Copies 16 bytes; where not inside, writes zeros and reads nothing.
inline void copy_async_16(void* shared, const void* global, bool inside = true,
                          stand_in::Place place = stand_in::Place::current()) {
  stand_in::issue_copy(shared, global, place);
  stand_in::PendingCopy& copy = stand_in::last_copy();
  copy.value = inside ? *static_cast<const uint4*>(global) : uint4{0, 0, 0, 0};
  *copy.to = {~0u, ~0u, ~0u, ~0u};
}

/// What this thread has issued since its last commit becomes one group.
inline void commit_copies() { stand_in::commit_group(); }

/// Waits until at most `Pending` of this thread's groups are on their way.
template <int Pending>
void wait_for_copies() {
  for (const stand_in::PendingCopy& copy : stand_in::take_arrived(Pending)) *copy.to = copy.value;
}

}  // namespace t2t

#else

namespace t2t {

/// Copies 16 bytes; where not inside, writes zeros and reads nothing.
__device__ __forceinline__ void copy_async_16(void* shared, const void* global,
                                              bool inside = true) {
  const auto to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(global),
               "r"(inside ? 16 : 0)
               : "memory");
}

/// What this thread has issued since its last commit becomes one group.
__device__ __forceinline__ void commit_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

/// Waits until at most `Pending` of this thread's groups are on their way.
template <int Pending>
__device__ __forceinline__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
}

}  // namespace t2t

#endif
