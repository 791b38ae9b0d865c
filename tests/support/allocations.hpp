// Every allocation of a test program by new, xtensor's among them, counted by guarded_memory.cpp:
// for checks that a call makes none.
#pragma once

#include <atomic>
#include <cstddef>

#if defined(__SANITIZE_THREAD__)
constexpr bool allocations_counted = false;  // starting a plain thread allocates (rows.hpp)
#else
constexpr bool allocations_counted = true;
#endif
extern std::atomic<std::size_t> allocations;
