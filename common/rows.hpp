// Work that is the same for every row, or for every task of a list, spread over the cores.
//
// What is called must not throw (check shapes before the loop) and must write only its own rows.
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
// ThreadSanitizer does not see how OpenMP's threads wait for each other and would report races that
// are none: under it, the same tasks run on plain threads, and OpenMP has one (CMakePresets.json).
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

/// Below so many floats, waking a thread costs more than it saves. (An `if` on the pragma would not
/// do: OpenMP sets up a team even for one thread.)
constexpr std::size_t worth_sharing = 16384;

/// Calls f(t) for each t in [0, T), several at once, in equal shares. Rows of C floats.
template <class F>
void for_each_row(std::size_t T, std::size_t C, F f) {
  if (T * C <= worth_sharing) {
    for (std::size_t t = 0; t < T; ++t) f(t);
    return;
  }
#pragma omp parallel for schedule(static)
  for (std::size_t t = 0; t < T; ++t) f(t);
}

/// Calls f(i, thread) for each i in [0, count), each on whichever thread is free next: for few
/// tasks of unequal size, of some `size` floats each. thread, in [0, thread_count()), lets f find
/// scratch of its own.
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
