// A timeline in the terminal.
#pragma once

#include <fmt/format.h>

#include "21_pipeline/timeline/timeline.hpp"

namespace t2t {

inline void print_timeline(const Timeline& timeline, std::size_t columns) {
  std::size_t stage = 0;
  for (const std::string& line : drawn(timeline, columns))
    fmt::print("  stage {}  {}\n", stage++, line);
}

}  // namespace t2t
