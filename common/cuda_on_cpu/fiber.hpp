// A fiber is a call with its own stack, which can stop half-way and go on later. The stand-in runs
// each CUDA thread as a fiber. A switch between fibers is 14 instructions on x86-64 and 24 on
// 64-bit ARM; on other CPUs ucontext does it. The sanitizers are told of each switch. For
// ThreadSanitizer each fiber is a thread, and a switch does not order memory accesses.
#pragma once

#include <cstddef>

#if !(defined(__x86_64__) || defined(__aarch64__)) || defined(T2T_UCONTEXT)
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

  /// Called from outside: runs the fiber until it suspends itself.
  void resume();
  /// Called inside the fiber: returns to the caller of resume, until the next resume.
  void suspend();
  /// Forgets where the fiber stopped: the next resume begins at its entry.
  void restart();
  /// Each entry must call this first.
  static void entered();

 private:
  Entry entry_;
  char* stack_;
  // What AddressSanitizer and ThreadSanitizer know of the fiber while it is stopped.
  [[maybe_unused]] void* sanitizer_state_ = nullptr;
  [[maybe_unused]] void* race_state_ = nullptr;
#ifdef T2T_UCONTEXT
  ucontext_t context_;
#else
  void* stopped_at_ = nullptr;  // its stack pointer
#endif
};

#ifdef T2T_RACE_DETECTOR

/// Tell ThreadSanitizer that what was done before a release happened before what follows an acquire
/// of the same address.
void release(void* address);
void acquire(void* address);

/// While an object of it exists, ThreadSanitizer ignores what this fiber reads and writes: for the
/// stand-in's own lists, which all fibers share.
class Unwatched {
 public:
  Unwatched();
  ~Unwatched() { end(); }
  /// For a fiber that is stopped for good while one exists.
  static void end();
};

/// Who reads and writes memory beside the threads, such as a GPU's copy engine: one more thread for
/// ThreadSanitizer.
class Agent {
 public:
  Agent();
  ~Agent();
  Agent(const Agent&) = delete;

 private:
  friend class AsAgent;
  void* fiber_;
};

/// While an object of it exists, the accesses below count as the agent's.
class AsAgent {
 public:
  explicit AsAgent(const Agent& agent);
  ~AsAgent();
  AsAgent(const AsAgent&) = delete;

 private:
  void* before_;
};
void watch_read(const void* address, std::size_t bytes);
void watch_write(const void* address, std::size_t bytes);

#else

struct Agent {};
struct AsAgent {
  explicit AsAgent(const Agent&) {}
  ~AsAgent() {}
};
inline void watch_read(const void*, std::size_t) {}
inline void watch_write(const void*, std::size_t) {}
inline void release(void*) {}
inline void acquire(void*) {}
struct Unwatched {
  ~Unwatched() {}
  static void end() {}
};

#endif

}  // namespace t2t::stand_in
