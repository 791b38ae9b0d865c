// The stand-in for a GPU: what kernel.hpp's functions stand on when a C++ compiler compiles a
// kernel.
//
// A launch runs its blocks one after another, and a block's threads as fibers of one CPU thread. A
// fiber runs until it has to wait for others (a barrier, a warp operation) or ends, so a run is
// repeatable. The environment variable T2T_ORDER = forward (as without it), reverse or a number
// (a shuffle's seed) changes the order of the threads: no result may depend on it.
//
// Not modelled: time, bank conflicts, blocks that run side by side or talk to each other.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "cuda_on_cpu/place.hpp"
#include "cuda_on_cpu/vector_types.hpp"

// Those of the thread that runs now.
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
inline constexpr int warpSize = 32;

namespace t2t::stand_in {

struct LaunchSite {
  const char* kernel;
  const char* file;
  int line;
};

/// Calls body once a thread of the grid. Throws std::runtime_error for sizes that no GPU takes and
/// for every mistake named below; the next launch starts afresh.
void run(const LaunchSite& site, const void* kernel, dim3 grid, dim3 block,
         std::size_t shared_bytes, const std::function<void()>& body);

/// The block's dynamic shared memory. As a block begins it and the kernel's static shared memory
/// hold 0xff in every byte: a NaN in every float.
std::byte* dynamic_shared();
/// Whether these 16 bytes are in the block's shared memory, as far as we know it.
bool is_shared(const void* address);

/// Ends the launch: run() throws what, with the place, thread and block that it was noticed in.
[[noreturn]] void fault(std::string what, const Place& place);

/// The running thread's place in its warp.
unsigned lane();

/// Waits until every thread of the block that has not ended has come to the same place.
void wait_for_block(const Place& place);

/// Waits until `threads` threads have come to barrier id.
void wait_for_named(int id, int threads, const Place& place);

/// A warp operation: the lanes that `mask` names meet, and the last one to come does the work for
/// all of them: it finds what each lane brought and where each wants its result.
struct Lanes {
  unsigned mask;
  const void* brought[32];
  void* result[32];
  const Place* place;

  /// What lane `from` brought. It is a fault of lane `reader` to ask for one that is not there.
  template <class T>
  const T& read(unsigned from, unsigned reader) const {
    if (!(mask >> from & 1)) fault_absent(from, reader);
    return *static_cast<const T*>(brought[from]);
  }
  [[noreturn]] void fault_absent(unsigned from, unsigned reader) const;
};
void meet_lanes(unsigned mask, const void* brought, void* result, void (*work)(const Lanes&),
                const Place& place);

/// Gives each lane pick(lane, lanes): a function of what the lanes brought, without captures.
template <class Result, class Brought, class Pick>
Result meet(unsigned mask, const Brought& brought, Pick, const Place& place) {
  Result result;
  meet_lanes(
      mask, &brought, &result,
      [](const Lanes& lanes) {
        for (unsigned lane = 0; lane < 32; ++lane) {
          if (lanes.mask >> lane & 1) {
            *static_cast<Result*>(lanes.result[lane]) = Pick{}(lane, lanes);
          }
        }
      },
      place);
  return result;
}

}  // namespace t2t::stand_in
