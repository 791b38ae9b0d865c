// Calls something in a process of its own: a mistake that would end the program, or that would
// never end, becomes a failed check. It is for work on one thread, since the copied process has no
// other.
#pragma once

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>

namespace t2t {

/// How the call ended: "returned", "threw" or "signal 11". It may take two seconds of the
/// processor's time.
template <class Call>
std::string ending_apart(Call call) {
  const pid_t child = fork();
  if (child == 0) {
    for (const int signal : {SIGSEGV, SIGABRT, SIGFPE, SIGILL, SIGBUS})
      std::signal(signal, SIG_DFL);
    const rlimit seconds{2, 2}, none{0, 0};
    setrlimit(RLIMIT_CPU, &seconds);
    setrlimit(RLIMIT_CORE, &none);
    try {
      call();
    } catch (...) {
      _exit(1);
    }
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) return "signal " + std::to_string(WTERMSIG(status));
  return WEXITSTATUS(status) == 0 ? "returned" : "threw";
}

}  // namespace t2t
