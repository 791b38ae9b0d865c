// The memory of a test program's tensors. Each lies between two guards, bytes that nothing may
// write, which are looked at when the tensor is freed: a write past its end is a failed check, and
// not a crash somewhere later. As floats, these bytes are NaN. New numbers are NaN until they are
// set, and freed ones are NaN again. So a check notices who reads any of them. What else comes from
// new, like the numbers of a std::vector, lies between smaller guards.
#include <doctest/doctest.h>
#include <omp.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

#include "support/allocations.hpp"
#include "support/little_memory.hpp"

std::atomic<std::size_t> t2t::allocations = 0, t2t::allocations_in_loops = 0;
using namespace t2t;

static void count_allocation() {
  if (!allocations_counted) return;
  ++allocations;
  if (omp_in_parallel()) ++allocations_in_loops;
}

#if defined(__SANITIZE_ADDRESS__)
// The sanitizer has guards of its own, which see reads as well.
constexpr std::size_t guard = 0, small_guard = 0, size_room = 0;
#else
constexpr std::size_t guard = 1024;      // bytes before and after each tensor
constexpr std::size_t small_guard = 16;  // and of anything else, like a std::vector's numbers
constexpr std::size_t size_room = 16;    // for the size of anything else, before its first guard
#endif
constexpr unsigned char nan_byte = 0xff;  // four such bytes are a NaN
/// The bytes of a guard. They are NaNs, too, but none that a computation makes.
constexpr auto guard_bytes = [] {
  std::array<unsigned char, std::max<std::size_t>({guard, small_guard, 4})> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = i % 4 < 2 ? 0xa5 : 0xff;
  return bytes;
}();

static void put_guard(unsigned char* to, std::size_t bytes) {
  std::memcpy(to, guard_bytes.data(), bytes);
}
static bool untouched(const unsigned char* from, std::size_t bytes) {
  return std::memcmp(from, guard_bytes.data(), bytes) == 0;
}

static void expect_untouched(const unsigned char* memory, std::size_t size) {
  if (!doctest::is_running_in_test) return;
  const std::size_t floats = size / sizeof(float);
  if (!untouched(memory - guard, guard))
    FAIL_CHECK("written before the first number of a tensor of " << floats << " numbers");
  if (!untouched(memory + size, guard))
    FAIL_CHECK("written after the last number of a tensor of " << floats << " numbers");
}

static void expect_small_untouched(const unsigned char* memory, std::size_t size) {
  if (!doctest::is_running_in_test) return;
  if (!untouched(memory - small_guard, small_guard))
    FAIL_CHECK("written before the first of " << size << " bytes that new gave");
  if (!untouched(memory + size, small_guard))
    FAIL_CHECK("written after the last of " << size << " bytes that new gave");
}

static std::atomic<std::size_t> short_from = SIZE_MAX;  // bytes
static std::atomic<unsigned> short_each = 1, short_calls = 0;
static std::atomic<bool> is_enough = false;
static thread_local bool is_spared = false;

t2t::LittleMemory::LittleMemory(std::size_t least, unsigned every) {
  short_each = every, short_calls = 0, short_from = least;
}
t2t::LittleMemory::~LittleMemory() { short_from = SIZE_MAX; }
void t2t::LittleMemory::spare_this_thread() { is_spared = true; }
void t2t::LittleMemory::set_enough(bool enough) { is_enough = enough; }

static void expect_memory(std::size_t size) {
  count_allocation();
  if (size > std::size_t(-1) / 2) throw std::bad_alloc();
  if (size < short_from || is_spared || is_enough) return;
  if (++short_calls % short_each == 0) throw std::bad_alloc();
}

/// The size; a small guard; the memory; a small guard. (Inlined, gcc would take these two for a
/// mistake: a new undone by a plain free.)
[[gnu::noinline]] void* operator new(std::size_t size) {
  expect_memory(size);
  void* const block = std::malloc(size_room + small_guard + size + small_guard);
  if (block == nullptr) throw std::bad_alloc();
  if (guard == 0) return block;
  std::memcpy(block, &size, sizeof size);
  auto* const memory = static_cast<unsigned char*>(block) + size_room + small_guard;
  put_guard(memory - small_guard, small_guard);
  put_guard(memory + size, small_guard);
  return memory;
}
/// The sanitizer's own would not fit the delete below. std::stable_sort asks for memory like this.
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  try {
    return operator new(size);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  if (memory == nullptr || guard == 0) return std::free(memory);
  auto* const first = static_cast<unsigned char*>(memory);
  unsigned char* const block = first - small_guard - size_room;
  std::size_t size = 0;
  std::memcpy(&size, block, sizeof size);
  expect_small_untouched(first, size);
  std::free(block);
}
void operator delete(void* memory, std::size_t) noexcept { operator delete(memory); }

/// A cache line with the size; a guard; the tensor; a guard.
[[gnu::noinline]] void* operator new(std::size_t size, std::align_val_t alignment) {
  const auto line = std::size_t(alignment);
  expect_memory(size);
  const std::size_t bytes = line + guard + size + guard;
  void* const block = std::aligned_alloc(line, (bytes + line - 1) / line * line);
  if (block == nullptr) throw std::bad_alloc();
  std::memcpy(block, &size, sizeof size);
  auto* const memory = static_cast<unsigned char*>(block) + line + guard;
  put_guard(memory - guard, guard);
  std::memset(memory, nan_byte, size);
  put_guard(memory + size, guard);
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t alignment) noexcept {
  if (memory == nullptr) return;
  auto* const numbers = static_cast<unsigned char*>(memory);
  unsigned char* const block = numbers - guard - std::size_t(alignment);
  std::size_t size = 0;
  std::memcpy(&size, block, sizeof size);
  expect_untouched(numbers, size);
  std::memset(numbers, nan_byte, size);
  std::free(block);
}
void operator delete(void* memory, std::size_t, std::align_val_t alignment) noexcept {
  operator delete(memory, alignment);
}
