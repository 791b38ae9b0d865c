// Keeps off the output of a test what its functions print, or returns it.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <string>

namespace t2t {

/// While it lives, what is written to the standard output and to the standard error is dropped:
/// what an untrained model writes is no text.
struct Silence {
  int out = ::dup(STDOUT_FILENO), error = ::dup(STDERR_FILENO);
  Silence() {
    std::fflush(stdout);
    const int nothing = ::open("/dev/null", O_WRONLY);
    ::dup2(nothing, STDOUT_FILENO), ::dup2(nothing, STDERR_FILENO);
    ::close(nothing);
  }
  ~Silence() {
    std::fflush(stdout);
    ::dup2(out, STDOUT_FILENO), ::dup2(error, STDERR_FILENO);
    ::close(out), ::close(error);
  }
};

/// What act writes to the standard output.
template <class Act>
std::string printed_by(const Act& act) {
  std::FILE* const kept = std::tmpfile();
  std::fflush(stdout);
  const int out = ::dup(STDOUT_FILENO);
  ::dup2(::fileno(kept), STDOUT_FILENO);
  act();
  std::fflush(stdout);
  ::dup2(out, STDOUT_FILENO), ::close(out);
  std::string text;
  std::rewind(kept);
  for (int c; (c = std::fgetc(kept)) != EOF;) text += char(c);
  std::fclose(kept);
  return text;
}

}  // namespace t2t
