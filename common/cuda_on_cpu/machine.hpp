// What the stand-in's sources share: the threads of the block that runs, and what they wait for.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cuda_on_cpu/async_copy.hpp"
#include "cuda_on_cpu/fiber.hpp"
#include "cuda_on_cpu/order.hpp"
#include "cuda_on_cpu/stand_in.hpp"

namespace t2t {
struct Mbarrier;
}

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
  const Mbarrier* mbarrier = nullptr;  // whose phase it waits for
  int registers = 0;                   // so many it waits for
  std::size_t store_groups = 0;        // groups of stores that it has committed
  unsigned fences = 0;                 // calls of fence_async
  bool fenced = false;                 // by __threadfence, since its last atomic function
  void* counted_at = nullptr;          // where that was, if no fence has followed it
  // Their addresses tell ThreadSanitizer what happened before this thread goes on, and before the
  // stores that it waits for have read their tiles.
  char woken = 0, stores_read = 0;
};

struct Machine {
  std::vector<std::unique_ptr<Thread>> threads;
  unsigned count = 0, live = 0;  // threads in the block; those that have not ended
  Thread* current = nullptr;
  std::vector<std::unique_ptr<Meeting>> meetings;  // open ones
  std::function<void()> const* body = nullptr;
  LaunchSite site{};
  Order order;
  int capability = 0;  // of the GPU whose limits hold: 90 is compute capability 9.0
  std::span<std::byte> dynamic_shared;
  std::vector<std::span<std::byte>> static_shared;
  bool blocks_meet = false;  // the race detector orders this launch's blocks by fences alone
  std::string fault;         // not empty: the launch ends
  // Their addresses tell ThreadSanitizer what happened before a block begins, before it ends, and
  // before its threads are stopped after a fault.
  char block_begins = 0, block_ends = 0, given_up = 0;
};
extern Machine the_machine;
inline Machine& machine() { return the_machine; }

/// Stops the running thread, and with it the launch.
[[noreturn]] void end_launch(std::string what, const char* file, unsigned line);
/// Records a fault, unless there is one, and returns. The launch ends when no thread runs any more:
/// for faults of what happens beside the threads, and inside warp operations.
void note_fault(std::string what, const char* file, unsigned line);
void note_fault(std::string what, const Place& place);
/// Stops the running thread if there is a fault.
void stop_if_faulty();
/// Gives up the running thread's turn until somebody sets its state to ready again.
void wait_at(const Place& place);
/// The running thread's warp.
inline unsigned current_warp() { return the_machine.current->number / 32; }

/// Throws std::runtime_error with the place of the launch, the kernel and why.
[[noreturn]] void refuse(const LaunchSite& site, const std::string& why);
/// Refuse a launch that no GPU accepts, because of its sizes, or of its shared memory.
void expect_launchable(const LaunchSite& site, dim3 grid, dim3 block);
void expect_shared_fits(const LaunchSite& site, const Machine& e);
/// A fault if the GPU that T2T_CARD names does not have this: sm_90 and later do, or sm_90 alone.
void expect_hopper(const char* what, const Place& place);
void expect_warpgroups(const char* what, const Place& place);

/// Called when a thread has ended: completes a barrier at which all remaining threads now wait.
void complete_block_barrier();

/// "block (0, 0, 0) is stuck", and how many threads wait at which place.
std::string describe_stuck_block();

std::string to_string(const uint3& index);

// What a Hopper GPU does beside the threads of a block. Each of its parts forgets what was before
// when a block begins, and records a fault when a block ends and something is unfinished.

/// mbarrier.cpp
void begin_mbarriers();
bool is_initialized(const Mbarrier& barrier);
void bytes_landed(const Mbarrier& barrier, std::int64_t bytes, const Place& place);
std::string describe_mbarrier(const Thread& thread);

/// bulk_copy.cpp. Lands one copy of a tile, and returns false if none is in flight.
void begin_copies();
bool land_a_copy();
void expect_no_copies();
/// Tells ThreadSanitizer that all copies so far happened before the block's end.
void join_copier();

/// warpgroup.cpp
void begin_products_of_block();
void expect_no_products();
/// The same for products.
void join_tensor_cores();

/// registers.cpp
void begin_registers();
void expect_equal_registers();
std::string describe_registers(const Thread& thread);
/// A fault: the warps of this warpgroup have, or have issued, different numbers of something.
void note_unequal_warps(std::size_t warpgroup, const char* of_what);

/// proxies.cpp: who wrote 16 bytes of dynamic shared memory by ordinary stores, and has not called
/// fence_async since. Finds the bytes that have changed and lets the running thread have written
/// them.
void begin_proxies();
void note_writes();
/// A copy has written this chunk: no thread needs a fence for it.
void note_async_write(const std::byte* chunk);
/// A fault if `reader` reads this chunk without its writer's fence.
void expect_fenced(const std::byte* chunk, const char* reader, const Place& place);

/// A tile begins at a multiple of so many bytes, and so does dynamic shared memory.
constexpr std::size_t tile_alignment = 1024;
/// Where the 16 bytes at this offset of a tile lie: chunk c of row r at chunk c XOR r % 8.
constexpr std::size_t swizzled(std::size_t offset) { return offset ^ ((offset >> 7 & 7) << 4); }

}  // namespace t2t::stand_in
