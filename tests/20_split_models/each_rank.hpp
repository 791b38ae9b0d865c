// What each rank must return, where they differ.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "19_ranks/on_ranks.hpp"
#include "support/first_difference.hpp"

namespace t2t {

/// "" if each rank r returned want[r], or else the first that did not and its first difference.
inline std::string first_wrong_rank(const OnRanks& got,
                                    const std::vector<std::vector<float>>& want) {
  if (!got.error.empty()) return got.error;
  for (std::size_t r = 0; r < want.size(); ++r)
    if (got.results[r] != want[r])
      return fmt::format("rank {}: {}", r, first_difference(got.results[r], want[r]));
  return "";
}

}  // namespace t2t
