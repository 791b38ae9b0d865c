// What the stand-in's sources share: the threads of the block that runs, and what they wait for.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cuda_on_cpu/async_copy.hpp"
#include "cuda_on_cpu/fiber.hpp"
#include "cuda_on_cpu/stand_in.hpp"

namespace t2t::stand_in {

/// Threads that wait for each other, at __syncthreads, at a named barrier or in a warp operation.
struct Meeting {
  enum class Kind { block, named, warp } kind;
  unsigned key = 0;   // the barrier's id, or the mask
  unsigned warp = 0;  // whose warp operation it is
  unsigned wanted = 0, here = 0;
  Place place;
  bool orders_memory = true;  // for ThreadSanitizer
};

struct Thread {
  enum class State { ready, waiting, done };

  explicit Thread(Fiber::Entry entry) : fiber(entry) {}

  Fiber fiber;
  uint3 index{};        // threadIdx
  unsigned number = 0;  // in its block: warp * 32 + lane
  State state = State::done;
  Meeting* meeting = nullptr;  // what it waits for, at `place`
  Place place;
  const void* brought = nullptr;  // to a warp operation
  void* result = nullptr;
  std::vector<PendingCopy> copies;     // issued, not yet waited for
  std::vector<std::size_t> committed;  // how many copies each committed group holds
  char woken = 0;  // its address tells ThreadSanitizer what happened before this thread goes on
};

struct Machine {
  std::vector<std::unique_ptr<Thread>> threads;
  unsigned count = 0, live = 0;  // threads in the block; those that have not ended
  Thread* current = nullptr;
  std::vector<std::unique_ptr<Meeting>> meetings;  // open ones
  std::function<void()> const* body = nullptr;
  LaunchSite site{};
  std::span<std::byte> dynamic_shared;
  std::vector<std::span<std::byte>> static_shared;
  std::string fault;  // not empty: the launch ends
  // Their addresses tell ThreadSanitizer what happened before a block begins, before it ends, and
  // before its threads are stopped after a fault.
  char block_begins = 0, block_ends = 0, given_up = 0;
};
extern Machine the_machine;
inline Machine& machine() { return the_machine; }

/// Stops the running thread, and with it the launch.
[[noreturn]] void end_launch(std::string what, const char* file, unsigned line);

/// Throws std::runtime_error with the place of the launch, the kernel and why.
[[noreturn]] void refuse(const LaunchSite& site, const std::string& why);
/// Refuse a launch that no GPU accepts, because of its sizes, or of its shared memory.
void expect_launchable(const LaunchSite& site, dim3 grid, dim3 block);
void expect_shared_fits(const LaunchSite& site, const Machine& e);

/// Called when a thread has ended: completes a barrier at which all remaining threads now wait.
void complete_block_barrier();

/// "block (0, 0, 0) is stuck", and how many threads wait at which place.
std::string describe_stuck_block();

std::string to_string(const uint3& index);

}  // namespace t2t::stand_in
