// "1 rank", "4 ranks".
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <string>

namespace t2t {

inline std::string ranks_text(std::size_t ranks) {
  return fmt::format("{} rank{}", ranks, ranks == 1 ? "" : "s");
}

}  // namespace t2t
