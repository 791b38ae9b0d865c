// Memory that runs out, for checks of what goes on without it (tests/support/guarded_memory.cpp).
#pragma once

#include <cstddef>

namespace t2t {

/// While one lives, of the calls of operator new for at least `least` bytes, each `every`-th throws
/// std::bad_alloc, in all threads but those that are spared.
class LittleMemory {
 public:
  explicit LittleMemory(std::size_t least, unsigned every = 1);
  ~LittleMemory();
  LittleMemory(const LittleMemory&) = delete;

  static void spare_this_thread();
  /// As long as it is set, nothing fails.
  static void set_enough(bool enough);
};

}  // namespace t2t
