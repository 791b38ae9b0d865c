#include "blas_buffers.hpp"

#if defined(__ELF__)
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <string_view>
#include <vector>

#include "rows.hpp"

// OpenBLAS's own functions, null with another BLAS.
extern "C" {
[[gnu::weak]] void* blas_memory_alloc(int);
[[gnu::weak]] void blas_memory_free(void*);
}

namespace t2t {

static void end_without_buffers(int) {
  constexpr std::string_view line =
      "OpenBLAS can't get memory for its buffers: raise ulimit -v, or lower OMP_NUM_THREADS\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
  _exit(1);
}

/// After so many seconds of CPU time the program ends; 0: it goes on.
static void allow_work(time_t seconds) {
  const itimerval timer = {{0, 0}, {seconds, 0}};
  std::signal(SIGPROF, seconds > 0 ? end_without_buffers : SIG_DFL);
  setitimer(ITIMER_PROF, &timer, nullptr);
}

static bool has_limit() {
  rlimit all{}, data{};
  getrlimit(RLIMIT_AS, &all), getrlimit(RLIMIT_DATA, &data);
  return all.rlim_cur != RLIM_INFINITY || data.rlim_cur != RLIM_INFINITY;
}

/// Called before the libraries' own constructors, of which OpenBLAS's takes the first buffers.
static void before_libraries(int, char**, char**) {
  if (has_limit()) allow_work(2);
}
[[gnu::section(".preinit_array"), gnu::used]] static void (*const first)(int, char**,
                                                                         char**) = before_libraries;

void take_blas_buffers() {
  const bool here = blas_memory_alloc && blas_memory_free;
  std::vector<void*> buffers(here ? std::min<std::size_t>(thread_count(), 64) : 0);
  for (void*& buffer : buffers) buffer = blas_memory_alloc(0);
  for (void* buffer : buffers) blas_memory_free(buffer);  // OpenBLAS keeps them
  if (has_limit()) allow_work(0);
}

}  // namespace t2t

#else
void t2t::take_blas_buffers() {}
#endif
