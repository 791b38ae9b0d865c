// A word where OpenBLAS would say none: it takes its buffers while it is loaded, before main, and
// where ulimit -v leaves too little it asks for them again and again, for ever. So it has two
// seconds of work, counted from before the libraries begin until our own code does. For linalg.cpp
// alone.
#pragma once

#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <csignal>
#include <string_view>

#if defined(__ELF__)
namespace t2t {

static void end_without_buffers(int) {
  constexpr std::string_view line =
      "OpenBLAS gets no memory for its buffers: raise ulimit -v, or set OMP_NUM_THREADS lower\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
  _exit(1);
}
static void allow_work(time_t seconds) {
  const itimerval timer = {{0, 0}, {seconds, 0}};
  std::signal(SIGPROF, seconds > 0 ? end_without_buffers : SIG_DFL);
  setitimer(ITIMER_PROF, &timer, nullptr);
}
static bool has_limit() {
  rlimit limit{};
  return getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}
static void before_libraries(int, char**, char**) {
  if (has_limit()) allow_work(2);
}
[[gnu::constructor]] static void after_libraries() {
  if (has_limit()) allow_work(0);
}
[[gnu::section(".preinit_array"), gnu::used]] static void (*const first)(int, char**,
                                                                         char**) = before_libraries;

}  // namespace t2t
#endif
