#include "cuda_on_cpu/stand_in.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>
#include <utility>
#include <vector>

#include "cuda_on_cpu/machine.hpp"
#include "cuda_on_cpu/static_shared.hpp"

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace t2t::stand_in {

Machine the_machine;

std::byte* dynamic_shared() { return machine().dynamic_shared.data(); }

namespace {

bool holds(std::span<const std::byte> memory, const void* address, std::size_t bytes) {
  const auto* first = static_cast<const std::byte*>(address);
  return first >= memory.data() && first + bytes <= memory.data() + memory.size();
}

}  // namespace

bool is_dynamic_shared(const void* address, std::size_t bytes) {
  return holds(machine().dynamic_shared, address, bytes);
}

bool is_shared(const void* address, std::size_t bytes) {
  return is_dynamic_shared(address, bytes) ||
         std::ranges::any_of(machine().static_shared, [&](std::span<const std::byte> variable) {
           return holds(variable, address, bytes);
         });
}

unsigned lane() { return machine().current->number % 32; }

std::string to_string(const uint3& at) {
  return "(" + std::to_string(at.x) + ", " + std::to_string(at.y) + ", " + std::to_string(at.z) +
         ")";
}

void note_fault(std::string what, const char* file, unsigned line) {
  Machine& e = machine();
  const Unwatched unwatched;
  if (!e.fault.empty()) return;
  const std::string who =
      e.current == nullptr ? "" : "thread " + to_string(e.current->index) + " of ";
  e.fault = std::string(file) + ":" + std::to_string(line) + ": " + who + "block " +
            to_string(blockIdx) + ": " + what;
}

void note_fault(std::string what, const Place& place) {
  note_fault(std::move(what), place.file_name(), place.line());
}

void stop_if_faulty() {
  if (machine().fault.empty()) return;
  release(&machine().given_up);
  machine().current->fiber.suspend();
  std::abort();  // a thread is not resumed after a fault
}

void wait_at(const Place& place) {
  Thread& self = *machine().current;
  self.place = place;
  self.state = Thread::State::waiting;
  release(&machine().given_up);  // in case this thread never goes on
  self.fiber.suspend();
}

void note_unequal_warps(std::size_t warpgroup, const char* of_what) {
  const LaunchSite& site = machine().site;
  note_fault("the warps of warpgroup " + std::to_string(warpgroup) +
                 " end with different numbers of " + of_what,
             site.file, static_cast<unsigned>(site.line));
}

void end_launch(std::string what, const char* file, unsigned line) {
  if (machine().current == nullptr) {
    throw std::runtime_error(std::string(file) + ":" + std::to_string(line) + ": " + what +
                             ", outside of a kernel");
  }
  // This stack is never unwound, so nothing on it may own memory.
  note_fault(std::move(what), file, line);
  stop_if_faulty();
  std::abort();
}

void fault(std::string what, const Place& place) {
  end_launch(std::move(what), place.file_name(), place.line());
}

namespace {

/// The entry of each fiber: runs the kernel once for each block.
void run_thread() {
  Fiber::entered();
  Machine& e = machine();
  for (;;) {
    acquire(&e.block_begins);
    (*e.body)();
    release(&e.block_ends);
    Thread& self = *e.current;
    self.copies.clear();
    self.committed.clear();
    self.store_groups = 0;
    self.fenced = false;
    self.counted_at = nullptr;
    self.state = Thread::State::done;
    --e.live;
    complete_block_barrier();
    self.fiber.suspend();
  }
}

/// Frees memory that begins where a swizzled tile may begin.
struct FreeAligned {
  void operator()(std::byte* memory) const {
    ::operator delete[](memory, std::align_val_t{tile_alignment});
  }
};

/// The dynamic shared memory of a launch's blocks.
class DynamicShared {
 public:
  /// Memory that no block has used. It has exactly as many bytes as were asked for, so that
  /// AddressSanitizer reports the first one past them.
  std::span<std::byte> of(std::size_t bytes) {
    all_.emplace_back(new (std::align_val_t{tile_alignment}) std::byte[bytes]);
    return {all_.back().get(), bytes};
  }

 private:
  std::vector<std::unique_ptr<std::byte[], FreeAligned>> all_;
};

void prepare_threads(Machine& e, dim3 block) {
  e.count = block.x * block.y * block.z;
  while (e.threads.size() < e.count) e.threads.push_back(std::make_unique<Thread>(run_thread));
  for (unsigned i = 0; i < e.count; ++i) {
    Thread& thread = *e.threads[i];
    thread.number = i;
    thread.index = {i % block.x, i / block.x % block.y, i / (block.x * block.y)};
  }
}

/// Gives a thread its turn: it runs until it waits or ends.
void resume(Machine& e, Thread& thread) {
  e.current = &thread;
  threadIdx = thread.index;
  thread.fiber.resume();
  note_writes();
  e.current = nullptr;
}

/// Warps, one bit each, that get no turn for a while: a GPU's warps drift apart like this. None,
/// unless the order is random.
class HeldBack {
 public:
  explicit HeldBack(Order& order) : order_(order) {}

  std::uint32_t next() {
    if (!order_.is_random()) return 0;
    if (rounds_-- == 0) {
      rounds_ = order_.draw() % 12;
      warps_ = order_.decide(3) ? 0 : order_.draw() & order_.draw();
    }
    return warps_;
  }

 private:
  Order& order_;
  unsigned rounds_ = 0;
  std::uint32_t warps_ = 0;
};

void begin_block(Machine& e) {
  std::ranges::fill(e.dynamic_shared, std::byte{0xff});
  for (const auto& variable : e.static_shared) std::ranges::fill(variable, std::byte{0xff});
  e.meetings.clear();  // arrivals at a named barrier that nobody waits at
  release(&e.block_begins);
  e.live = e.count;
  for (unsigned i = 0; i < e.count; ++i) e.threads[i]->state = Thread::State::ready;
  begin_mbarriers();
  begin_copies();
  begin_products_of_block();
  begin_registers();
  begin_proxies();
}

/// Runs the threads in turn until all have ended or none can go on.
void run_block(Machine& e, const std::vector<std::size_t>& order) {
  begin_block(e);
  HeldBack held_back(e.order);
  for (bool moved = true; moved && e.fault.empty();) {
    moved = false;
    const std::uint32_t held = held_back.next();
    for (const std::size_t i : order) {
      Thread& thread = *e.threads[i];
      if (thread.state != Thread::State::ready) continue;
      moved = true;
      if (held >> (i / 32) & 1) continue;
      resume(e, thread);
      if (!e.fault.empty()) break;
    }
    if (!moved && e.live > 0) moved = land_a_copy();
  }
  if (e.live == 0) {
    expect_no_copies();
    expect_no_products();
    expect_equal_registers();
  }
  join_copier();
  join_tensor_cores();
  if (!e.blocks_meet) acquire(&e.block_ends);
  if (e.live > 0 && e.fault.empty()) e.fault = describe_stuck_block();
}

/// After a fault: stops the threads of this block, resets the machine for the next launch, and
/// throws.
[[noreturn]] void give_up(Machine& e) {
  acquire(&e.given_up);
  acquire(&e.block_ends);  // of earlier blocks
  const Unwatched unwatched;
  e.meetings.clear();
  for (unsigned i = 0; i < e.count; ++i) {
    Thread& thread = *e.threads[i];
    if (thread.state != Thread::State::done) thread.fiber.restart();
    thread.state = Thread::State::done;
    thread.meeting = nullptr;
    thread.mbarrier = nullptr;
    thread.registers = 0;
    thread.fenced = false;
    thread.counted_at = nullptr;
    thread.copies.clear();
    thread.committed.clear();
  }
  const std::string what = std::exchange(e.fault, {});
  refuse(e.site, what);
}

}  // namespace

void run(const LaunchSite& site, const void* kernel, dim3 grid, dim3 block,
         std::size_t shared_bytes, const std::function<void()>& body) {
  expect_launchable(site, grid, block);
  static std::mutex one_launch_at_a_time;
  const std::lock_guard lock(one_launch_at_a_time);
  Machine& e = machine();
  e.order = Order::wanted();
  e.capability = wanted_capability(site);
  const std::vector<std::size_t> order = e.order.of(block.x * block.y * block.z);
  prepare_threads(e, block);
  DynamicShared shared;
  e.dynamic_shared = shared.of(shared_bytes);
  e.static_shared = static_shared(kernel);
  expect_shared_fits(site, e);
  e.body = &body;
  e.site = site;
  gridDim = grid;
  blockDim = block;
  e.blocks_meet = false;
  for (const std::size_t i : e.order.of(std::size_t{grid.x} * grid.y * grid.z)) {
    blockIdx = {unsigned(i % grid.x), unsigned(i / grid.x % grid.y), unsigned(i / grid.x / grid.y)};
    if (e.blocks_meet) {
      const Unwatched unwatched;
      const auto before = std::exchange(e.threads, {});  // until the new ones have other numbers
      prepare_threads(e, block);
      e.dynamic_shared = shared.of(shared_bytes);
    }
    run_block(e, order);
    if (!e.fault.empty()) give_up(e);
  }
  acquire(&e.block_ends);
}

}  // namespace t2t::stand_in
