// Parallel loops over rows, and over tasks of unequal size.
//
// The function that a loop calls must not throw (so check shapes before the loop), and must write
// only the rows of its own call.
#pragma once

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cstddef>

#if defined(__SANITIZE_THREAD__)
#include <thread>
#include <vector>
#endif

namespace t2t {

#if defined(__SANITIZE_THREAD__)
// ThreadSanitizer does not see how OpenMP's threads wait for each other, and would report false
// races. In code that it watches, the same tasks run on plain threads, and OpenMP has one
// (CMakePresets.json). A common counter would order what the threads do, and so hide races: each
// takes every third task.
inline std::size_t thread_count() { return 3; }

template <class F>
void for_each_task(std::size_t count, std::size_t, F f) {
  std::vector<std::jthread> threads;
  for (std::size_t thread = 0; thread < thread_count(); ++thread)
    threads.emplace_back([&f, count, thread] {
      for (std::size_t i = thread; i < count; i += thread_count()) f(i, thread);
    });
}
template <class F>
void for_each_row(std::size_t T, std::size_t, F f) {
  for_each_task(T, 0, [&](std::size_t t, std::size_t) { f(t); });
}
#else

inline std::size_t thread_count() { return static_cast<std::size_t>(omp_get_max_threads()); }

/// Up to this many floats, a loop on one thread is faster. (An `if` on the pragma does not
/// help, since OpenMP sets up a team even for one thread.)
constexpr std::size_t worth_sharing = 16384;

/// Calls f(t) for each t in [0, T), with equal shares for the threads. A row has C floats.
template <class F>
void for_each_row(std::size_t T, std::size_t C, F f) {
  if (T * C <= worth_sharing) {
    for (std::size_t t = 0; t < T; ++t) f(t);
    return;
  }
#pragma omp parallel for schedule(static)
  for (std::size_t t = 0; t < T; ++t) f(t);
}

/// A range of neighbouring tasks, which threads take one at a time.
struct alignas(64) TaskShare {  // a cache line of its own
  std::atomic<std::size_t> next;
  std::size_t end;
};
constexpr std::size_t most_shares = 64;

/// Calls f(i, thread) for each i in [0, count): for tasks of about `size` floats each, which may
/// differ. Each thread begins with an equal share of neighbouring tasks, so that it reads memory
/// from front to back, and then takes tasks that are left in the shares of others. thread is below
/// thread_count(), so that f can have scratch memory for each thread.
template <class F>
void for_each_task(std::size_t count, std::size_t size, F f) {
  if (count * size <= worth_sharing) {
    for (std::size_t i = 0; i < count; ++i) f(i, std::size_t(0));
    return;
  }
  TaskShare shares[most_shares];
  const std::size_t n = std::min(thread_count(), most_shares);
  for (std::size_t s = 0; s < n; ++s) {
    shares[s].next.store(count * s / n, std::memory_order_relaxed);
    shares[s].end = count * (s + 1) / n;
  }
#pragma omp parallel
  {
    const std::size_t thread = static_cast<std::size_t>(omp_get_thread_num());
    for (std::size_t s = 0; s < n; ++s) {
      TaskShare& share = shares[(thread + s) % n];
      const auto take = [&] { return share.next.fetch_add(1, std::memory_order_relaxed); };
      for (std::size_t i = take(); i < share.end; i = take()) f(i, thread);
    }
  }
}
#endif

}  // namespace t2t
