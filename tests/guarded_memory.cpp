// The memory of a test program's tensors. Each lies between two guards, bytes that nothing may
// write, which are looked at when the tensor is freed: a write past its end is a failed check, and
// not a crash somewhere later. New numbers are NaN until they are set, and freed ones are NaN
// again, so that a check notices who reads them.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "allocations.hpp"

std::atomic<std::size_t> allocations = 0;

#if defined(__SANITIZE_ADDRESS__)
constexpr std::size_t guard = 0;  // the sanitizer has guards of its own, which see reads as well
#else
constexpr std::size_t guard = 1024;  // bytes before and after each tensor
#endif
constexpr unsigned char nan_byte = 0xff, guard_byte = 0xa5;  // four bytes of 0xff are a NaN

static bool untouched(const unsigned char* from) {
  return std::all_of(from, from + guard, [](unsigned char byte) { return byte == guard_byte; });
}

static void expect_untouched(const unsigned char* memory, std::size_t size) {
  if (!doctest::is_running_in_test) return;
  const std::size_t floats = size / sizeof(float);
  if (!untouched(memory - guard))
    FAIL_CHECK("written before the first number of a tensor of " << floats << " numbers");
  if (!untouched(memory + size))
    FAIL_CHECK("written after the last number of a tensor of " << floats << " numbers");
}

// Inlined, gcc would take them for a mistake: a new undone by a plain free.
[[gnu::noinline]] void* operator new(std::size_t size) {
  if (allocations_counted) ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { operator delete(memory); }

/// A cache line with the size; a guard; the tensor; a guard.
[[gnu::noinline]] void* operator new(std::size_t size, std::align_val_t alignment) {
  const auto line = std::size_t(alignment);
  if (allocations_counted) ++allocations;
  if (size > std::size_t(-1) / 2) throw std::bad_alloc();
  const std::size_t bytes = line + guard + size + guard;
  void* const block = std::aligned_alloc(line, (bytes + line - 1) / line * line);
  if (block == nullptr) throw std::bad_alloc();
  std::memcpy(block, &size, sizeof size);
  auto* const memory = static_cast<unsigned char*>(block) + line + guard;
  std::memset(memory - guard, guard_byte, guard);
  std::memset(memory, nan_byte, size);
  std::memset(memory + size, guard_byte, guard);
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
