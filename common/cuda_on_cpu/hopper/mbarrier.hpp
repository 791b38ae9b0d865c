// Barriers in shared memory that count arrivals and bytes (mbarrier, as sm_90 has it). A barrier is
// in one phase at a time. The phase ends when all arrivals have come and all expected bytes have
// landed; then the next one begins. Who waits names the phase by its parity: the first phase has
// parity 0. The stand-in counts phases, and reports what a GPU would answer with a hang or with
// silence: a barrier that was not initialized, an arrival or a byte too many, a wait without an
// end.
#pragma once

#include <cstdint>

#include "cuda_on_cpu/stand_in.hpp"

namespace t2t {

struct alignas(8) Mbarrier {
  std::uint64_t state;
};

/// One thread initializes the barrier for phases of `arrivals` arrivals, then calls
/// mbarrier_init_fence; __syncthreads tells the others.
void mbarrier_init(Mbarrier& barrier, int arrivals,
                   stand_in::Place place = stand_in::Place::current());
inline void mbarrier_init_fence() {}

void mbarrier_arrive(Mbarrier& barrier, stand_in::Place place = stand_in::Place::current());
/// Arrives, and lets the phase wait for `bytes` more bytes. They land by load_box (bulk_copy.hpp).
void mbarrier_arrive_expect(Mbarrier& barrier, int bytes,
                            stand_in::Place place = stand_in::Place::current());
/// Waits until the phase of this parity, 0 or 1, has ended.
void mbarrier_wait(const Mbarrier& barrier, int parity,
                   stand_in::Place place = stand_in::Place::current());

}  // namespace t2t
