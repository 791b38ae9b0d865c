#include "program/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include "program/print.hpp"

namespace t2t {

void show_progress(const std::string& line) {
  if (isatty(STDERR_FILENO) == 1) fmt::print(stderr, "\r\033[K{}", line);
}

std::string steps_done(std::size_t done, std::size_t all) {
  return fmt::format("  {} {}/{}", bar(double(done) / double(all), 24), done, all);
}

}  // namespace t2t
