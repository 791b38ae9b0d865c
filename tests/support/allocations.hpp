// Every allocation of a test program by new, xtensor's among them, counted by guarded_memory.cpp:
// for checks that a call makes none.
#pragma once

#include <atomic>
#include <cstddef>
#include <ostream>

namespace t2t {

#if defined(__SANITIZE_THREAD__)
constexpr bool allocations_counted = false;  // starting a plain thread allocates (rows.hpp)
#else
constexpr bool allocations_counted = true;
#endif
extern std::atomic<std::size_t> allocations, allocations_in_loops;

/// How often so many calls allocated. A check wants: never.
struct Allocated {
  std::size_t calls, times;
  explicit operator bool() const { return times == 0; }
};

inline std::ostream& operator<<(std::ostream& out, const Allocated& a) {
  return out << a.calls << (a.calls == 1 ? " call" : " calls") << " allocated " << a.times
             << (a.times == 1 ? " time" : " times") << ", wanted none";
}

/// Does this so many times. A first call that may allocate is made before.
template <class Call>
Allocated allocates_nothing(std::size_t calls, Call call) {
  const std::size_t before = allocations;
  for (std::size_t i = 0; i < calls; ++i) call();
  return {calls, allocations - before};
}

/// Does this, in which parallel loops may not allocate on any thread, nor on a first call: without
/// memory, what new throws there would end the program.
template <class Call>
Allocated loops_allocate_nothing(Call call) {
  const std::size_t before = allocations_in_loops;
  call();
  return {1, allocations_in_loops - before};
}

}  // namespace t2t
