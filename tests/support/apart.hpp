// Calls something in a process of its own: a mistake that would end the program, or that would
// never end, becomes a failed check. It is for work on one thread, since the copied process has no
// other: OpenMP would wait for those that it began before.
#pragma once

#include <omp.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <exception>
#include <string>

namespace t2t {

/// How the call ended: "returned", "signal 11", or "threw: " with what the exception says. It may
/// take two seconds of the processor's time.
template <class Call>
std::string ending_apart(Call call) {
  int ends[2];  // what the child writes to the second, its parent reads from the first
  if (pipe(ends) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    for (const int signal : {SIGSEGV, SIGABRT, SIGFPE, SIGILL, SIGBUS})
      std::signal(signal, SIG_DFL);
    const rlimit seconds{2, 2}, none{0, 0};
    setrlimit(RLIMIT_CPU, &seconds);
    setrlimit(RLIMIT_CORE, &none);
    omp_set_num_threads(1);
    try {
      call();
    } catch (const std::exception& error) {
      const std::string said = std::string(error.what()).substr(0, 4096);  // what a pipe can hold
      _exit(write(ends[1], said.data(), said.size()) < 0 ? 2 : 1);
    } catch (...) {
      _exit(1);
    }
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  close(ends[1]);
  std::string said(4096, 0);
  said.resize(std::size_t(std::max<ssize_t>(0, read(ends[0], said.data(), said.size()))));
  close(ends[0]);
  if (WIFSIGNALED(status)) return "signal " + std::to_string(WTERMSIG(status));
  return WEXITSTATUS(status) == 0 ? "returned" : "threw: " + said;
}

}  // namespace t2t
