// A fiber: a call that can stop half-way and go on later, on a stack of its own. The stand-in runs
// each CUDA thread as one. On x86-64 a switch is 14 instructions; elsewhere it is ucontext's. The
// sanitizers are told of each switch; to ThreadSanitizer each fiber is a thread, and a switch by
// itself orders nothing.
#pragma once

#include <cstddef>

#if !defined(__x86_64__) || defined(T2T_UCONTEXT)
#define T2T_UCONTEXT 1
#include <ucontext.h>
#endif

namespace t2t::stand_in {

class Fiber {
 public:
  using Entry = void (*)();  // never returns: it ends in suspend()

  explicit Fiber(Entry entry);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// From outside: runs the fiber until it suspends itself.
  void resume();
  /// From inside: goes back to who resumed it, until the next resume.
  void suspend();
  /// Forgets where the fiber stopped: the next resume begins at its entry.
  void restart();
  /// What every entry calls first.
  static void entered();

 private:
  Entry entry_;
  char* stack_;
  [[maybe_unused]] void* sanitizer_state_ =
      nullptr;                                   // AddressSanitizer's, while the fiber is stopped
  [[maybe_unused]] void* race_state_ = nullptr;  // ThreadSanitizer's
#ifdef T2T_UCONTEXT
  ucontext_t context_;
#else
  void* stopped_at_ = nullptr;  // its stack pointer
#endif
};

#ifdef T2T_RACE_DETECTOR

/// Marks for ThreadSanitizer: what came before a release happened before what follows an acquire of
/// the same address.
void release(void* address);
void acquire(void* address);

/// While one lives, ThreadSanitizer overlooks what this fiber reads and writes: the stand-in's own
/// lists, which all fibers share.
class Unwatched {
 public:
  Unwatched();
  ~Unwatched();
};

#else

inline void release(void*) {}
inline void acquire(void*) {}
struct Unwatched {
  ~Unwatched() {}
};

#endif

}  // namespace t2t::stand_in
