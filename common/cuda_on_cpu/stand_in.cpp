#include "cuda_on_cpu/stand_in.hpp"

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <numeric>
#include <random>
#include <stdexcept>
#include <utility>

#include "cuda_on_cpu/machine.hpp"
#include "cuda_on_cpu/static_shared.hpp"

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace t2t::stand_in {

Machine the_machine;

std::byte* dynamic_shared() { return machine().dynamic_shared.data(); }

bool is_shared(const void* address) {
  const Machine& e = machine();
  const auto* first = static_cast<const std::byte*>(address);
  const auto holds = [first](std::span<const std::byte> memory) {
    return first >= memory.data() && first + 16 <= memory.data() + memory.size();
  };
  return holds(e.dynamic_shared) || std::ranges::any_of(e.static_shared, holds);
}

unsigned lane() { return machine().current->number % 32; }

std::string to_string(const uint3& at) {
  return "(" + std::to_string(at.x) + ", " + std::to_string(at.y) + ", " + std::to_string(at.z) +
         ")";
}

/// Records the fault that ends the launch.
static void note_fault(std::string what, const std::string& at) {
  Machine& e = machine();
  if (e.current == nullptr) throw std::runtime_error(at + what + ", outside of a kernel");
  const Unwatched unwatched;
  e.fault = at + "thread " + to_string(e.current->index) + " of block " + to_string(blockIdx) +
            ": " + what;
}

void end_launch(std::string what, const char* file, unsigned line) {
  // This stack is never unwound, so nothing on it may own memory.
  note_fault(std::move(what), std::string(file) + ":" + std::to_string(line) + ": ");
  release(&machine().given_up);
  machine().current->fiber.suspend();
  std::abort();  // a thread is not resumed after a fault
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
    self.state = Thread::State::done;
    --e.live;
    complete_block_barrier();
    self.fiber.suspend();
  }
}

/// The order in which the threads of a block run, or the blocks of a launch.
std::vector<std::size_t> turns(std::size_t count) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  const char* wanted = std::getenv("T2T_ORDER");
  const std::string name = wanted == nullptr ? "forward" : wanted;
  if (name == "reverse") {
    std::reverse(order.begin(), order.end());
  } else if (name != "forward") {
    char* end = nullptr;
    std::mt19937 random(static_cast<unsigned>(std::strtoul(name.c_str(), &end, 10)));
    if (name.empty() || *end != '\0') {
      throw std::runtime_error("T2T_ORDER: wanted forward, reverse or a number, got '" + name +
                               "'");
    }
    for (std::size_t i = count; i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  }
  return order;
}

void prepare_threads(Machine& e, dim3 block) {
  e.count = block.x * block.y * block.z;
  while (e.threads.size() < e.count) e.threads.push_back(std::make_unique<Thread>(run_thread));
  for (unsigned i = 0; i < e.count; ++i) {
    Thread& thread = *e.threads[i];
    thread.number = i;
    thread.index = {i % block.x, i / block.x % block.y, i / (block.x * block.y)};
  }
}

/// Runs the threads in turn until all have ended or none can go on.
void run_block(Machine& e, const std::vector<std::size_t>& order) {
  std::ranges::fill(e.dynamic_shared, std::byte{0xff});
  for (const auto& variable : e.static_shared) std::ranges::fill(variable, std::byte{0xff});
  release(&e.block_begins);
  e.live = e.count;
  for (unsigned i = 0; i < e.count; ++i) e.threads[i]->state = Thread::State::ready;
  for (bool moved = true; moved && e.fault.empty();) {
    moved = false;
    for (const std::size_t i : order) {
      Thread& thread = *e.threads[i];
      if (thread.state != Thread::State::ready) continue;
      moved = true;
      e.current = &thread;
      threadIdx = thread.index;
      thread.fiber.resume();
      e.current = nullptr;
      if (!e.fault.empty()) break;
    }
  }
  acquire(&e.block_ends);
  if (e.live > 0 && e.fault.empty()) e.fault = describe_stuck_block();
}

/// After a fault: stops the threads of this block, resets the machine for the next launch, and
/// throws.
[[noreturn]] void give_up(Machine& e) {
  acquire(&e.given_up);
  const Unwatched unwatched;
  e.meetings.clear();
  for (unsigned i = 0; i < e.count; ++i) {
    Thread& thread = *e.threads[i];
    if (thread.state != Thread::State::done) thread.fiber.restart();
    thread.state = Thread::State::done;
    thread.meeting = nullptr;
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
  const std::vector<std::size_t> order = turns(block.x * block.y * block.z);
  prepare_threads(e, block);
  // Exactly as many bytes as were asked for, so that AddressSanitizer reports the first one past
  // them.
  const std::unique_ptr<std::byte[]> shared(new std::byte[shared_bytes]);
  e.dynamic_shared = {shared.get(), shared_bytes};
  e.static_shared = static_shared(kernel);
  expect_shared_fits(site, e);
  e.body = &body;
  e.site = site;
  gridDim = grid;
  blockDim = block;
  for (const std::size_t i : turns(std::size_t{grid.x} * grid.y * grid.z)) {
    blockIdx = {unsigned(i % grid.x), unsigned(i / grid.x % grid.y), unsigned(i / grid.x / grid.y)};
    run_block(e, order);
    if (!e.fault.empty()) give_up(e);
  }
}

}  // namespace t2t::stand_in
