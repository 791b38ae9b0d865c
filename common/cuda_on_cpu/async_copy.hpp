// Asynchronous copies of 16 bytes from global to shared memory (cp.async). The destination holds
// NaN from the issue of a copy until its thread waits for it. So reading too early, or overwriting
// a tile that is still read, always gives wrong numbers.
#pragma once

#include <vector>

#include "cuda_on_cpu/stand_in.hpp"
#include "cuda_on_cpu/vector_types.hpp"

namespace t2t {
namespace stand_in {

struct PendingCopy {
  uint4* to;
  uint4 value;
};

/// Records a copy. It is a fault when an address is not a multiple of 16.
void issue_copy(void* shared, const void* global, const Place& place);
/// The copy that this thread issued last.
PendingCopy& last_copy();
void commit_group();
/// Removes and returns the copies of all groups but the last `pending`.
std::vector<PendingCopy> take_arrived(int pending);

}  // namespace stand_in

/// Copies 16 bytes. When not inside, it writes zeros and does not read.
inline void copy_async_16(void* shared, const void* global, bool inside = true,
                          stand_in::Place place = stand_in::Place::current()) {
  stand_in::issue_copy(shared, global, place);
  stand_in::PendingCopy& copy = stand_in::last_copy();
  copy.value = inside ? *static_cast<const uint4*>(global) : uint4{0, 0, 0, 0};
  *copy.to = {~0u, ~0u, ~0u, ~0u};
}

/// Makes one group of the copies that this thread has issued since its last commit.
inline void commit_copies() { stand_in::commit_group(); }

/// Waits until at most `Pending` of this thread's groups are pending.
template <int Pending>
void wait_for_copies() {
  for (const stand_in::PendingCopy& copy : stand_in::take_arrived(Pending)) *copy.to = copy.value;
}

}  // namespace t2t
