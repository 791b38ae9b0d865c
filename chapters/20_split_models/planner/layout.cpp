#include "20_split_models/planner/layout.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

namespace t2t {

std::string layout_text(const Layout& layout) {
  std::vector<std::string> words;
  const auto add = [&](const char* name, std::size_t ranks) {
    if (ranks > 1) words.push_back(fmt::format("{} {}", name, ranks));
  };
  add("tensor", layout.t), add("context", layout.c), add("pipeline", layout.p);
  add("data", layout.d), add("experts", layout.e);
  if (layout.sharding == Sharding::optimizer && layout.d * layout.c > 1) words.push_back("ZeRO-1");
  if (layout.sharding == Sharding::all) words.push_back("ZeRO-3");
  if (layout.recompute) words.push_back("recomputed");
  return words.empty() ? "one device" : fmt::format("{}", fmt::join(words, ", "));
}

}  // namespace t2t
