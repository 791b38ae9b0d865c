// Every allocation of this program by new, counted, xtensor's among them: for checks that a call
// makes none. Include it in one file of a program.
#pragma once

#include <atomic>
#include <cstdlib>
#include <new>

#if defined(__SANITIZE_THREAD__)
constexpr bool allocations_counted = false;  // starting a plain thread allocates (rows.hpp)
#else
constexpr bool allocations_counted = true;
#endif
static std::atomic<std::size_t> allocations = 0;

// Inlined, gcc would take them for a mistake: a new undone by a plain free.
[[gnu::noinline]] void* operator new(std::size_t size) {
  if (allocations_counted) ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t size, std::align_val_t line) {
  if (allocations_counted) ++allocations;
  const std::size_t lines = (size + std::size_t(line) - 1) / std::size_t(line);
  if (void* memory = std::aligned_alloc(std::size_t(line), lines * std::size_t(line)))
    return memory;
  throw std::bad_alloc();
}

[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept { operator delete(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t line) noexcept {
  operator delete(memory, line);
}
