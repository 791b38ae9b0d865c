// The stand-in for a GPU, which runs kernels that a C++ compiler has compiled.
//
// A launch runs its blocks one after another, and the threads of a block as fibers of one CPU
// thread. A fiber runs until it has to wait for others (at a barrier or in a warp operation) or
// ends, so runs are repeatable. The environment variable T2T_ORDER sets the order of the threads
// and of the blocks: forward (the default), reverse, or a number, the seed of a random order. No
// result may depend on the order. Random orders also hold some warps back for a while, and let
// copies of tiles land early. T2T_CARD sets the GPU whose limit of shared memory holds: sm_80,
// sm_86, sm_89, sm_90 (the default), sm_100 or sm_120.
//
// Not modelled: time, bank conflicts, and blocks that run at the same time. What blocks may tell
// each other is in grid.hpp.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "cuda_on_cpu/place.hpp"
#include "cuda_on_cpu/vector_types.hpp"

// The built-in variables of the thread that runs now.
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
inline constexpr int warpSize = 32;

namespace t2t::stand_in {

struct LaunchSite {
  const char* kernel;
  const char* file;
  int line;
};

/// Calls body once for each thread of the grid. Throws std::runtime_error for sizes that no GPU
/// accepts, and for the faults below. The next launch is not affected.
void run(const LaunchSite& site, const void* kernel, dim3 grid, dim3 block,
         std::size_t shared_bytes, const std::function<void()>& body);

/// See launch.hpp.
int blocks_of_multiprocessor(const LaunchSite& site, int threads, std::size_t dynamic_bytes);

/// The compute capability of the GPU that T2T_CARD names, times 10.
int wanted_capability(const LaunchSite& site);

/// The block's dynamic shared memory. When a block begins, each byte of it and of the kernel's
/// static shared memory is 0xff, so each float is NaN.
std::byte* dynamic_shared();
/// Whether these bytes are in shared memory of the block that the stand-in knows of, or in its
/// dynamic shared memory.
bool is_shared(const void* address, std::size_t bytes = 16);
bool is_dynamic_shared(const void* address, std::size_t bytes);

/// Ends the launch: run() throws `what`, with the place, thread and block of the fault.
[[noreturn]] void fault(std::string what, const Place& place);

/// The running thread's lane: its number in its warp.
unsigned lane();

/// Waits until all threads of the block that have not ended wait at the same place.
void wait_for_block(const Place& place);

/// Waits until `threads` threads have come to barrier id, or comes there without waiting.
void wait_for_named(int id, int threads, const Place& place);
void arrive_at_named(int id, int threads, const Place& place);

/// A warp operation of the lanes in `mask`. The last lane that comes does the work for all of them,
/// with what each lane brought and the place for each lane's result. CUDA promises of __syncwarp
/// alone that what a lane wrote to memory before it can be read by the others after it: for the
/// race detector the other operations (shuffles, votes, products of matrices) order nothing.
struct LaneMeeting {
  unsigned mask;
  const void* brought[32];
  void* result[32];
  const Place* place;

  /// What lane `from` brought. Reading from a lane that is not in the mask is a fault of `reader`.
  template <class T>
  const T& read(unsigned from, unsigned reader) const {
    if (!(mask >> from & 1)) fault_absent(from, reader);
    return *static_cast<const T*>(brought[from]);
  }
  [[noreturn]] void fault_absent(unsigned from, unsigned reader) const;
};
void meet_lanes(unsigned mask, const void* brought, void* result, void (*work)(const LaneMeeting&),
                const Place& place, bool orders_memory = false);

/// Returns pick(lane, lanes) in each lane. pick has no captures.
template <class Result, class Brought, class Pick>
Result meet(unsigned mask, const Brought& brought, Pick, const Place& place) {
  Result result;
  meet_lanes(
      mask, &brought, &result,
      [](const LaneMeeting& lanes) {
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
