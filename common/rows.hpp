// Parallel loops over rows, and over tasks of unequal size.
//
// The function that a loop calls must not throw (so check shapes before the loop), and must write
// only the rows of its own call.
#pragma once

#include <omp.h>

#include <cstddef>

#if defined(__SANITIZE_THREAD__)
#include <atomic>
#include <thread>
#include <vector>
#endif

namespace t2t {

#if defined(__SANITIZE_THREAD__)
// ThreadSanitizer does not see how OpenMP's threads wait for each other, and would report false
// races. In its builds the same tasks run on plain threads, and OpenMP has one (CMakePresets.json).
inline std::size_t thread_count() { return 3; }

template <class F>
void for_each_task(std::size_t count, std::size_t, F f) {
  std::atomic<std::size_t> next = 0;
  std::vector<std::jthread> threads;
  for (std::size_t thread = 0; thread < thread_count(); ++thread)
    threads.emplace_back([&, thread] {
      for (std::size_t i = next++; i < count; i = next++) f(i, thread);
    });
}
template <class F>
void for_each_row(std::size_t T, std::size_t, F f) {
  for_each_task(T, 0, [&](std::size_t t, std::size_t) { f(t); });
}
#else

inline std::size_t thread_count() { return static_cast<std::size_t>(omp_get_max_threads()); }

/// With at most so many floats, a loop on one thread is faster. (An `if` on the pragma does not
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

/// Calls f(i, thread) for each i in [0, count), each on the thread that is free next: for few tasks
/// of unequal size, of about `size` floats each. thread is below thread_count(), so that f can have
/// scratch memory for each thread.
template <class F>
void for_each_task(std::size_t count, std::size_t size, F f) {
  if (count * size <= worth_sharing) {
    for (std::size_t i = 0; i < count; ++i) f(i, std::size_t(0));
    return;
  }
#pragma omp parallel for schedule(dynamic, 1)
  for (std::size_t i = 0; i < count; ++i) f(i, static_cast<std::size_t>(omp_get_thread_num()));
}
#endif

}  // namespace t2t
