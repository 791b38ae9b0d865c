// A bound for JSON that somebody else wrote. nlohmann's ordered_json keeps the names of an object
// in the order in which they come, and looks for each new one among all those before it: an object
// of n names takes time n². So an object may have most_names of them.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <vector>

namespace t2t {

inline constexpr std::size_t most_names = 1000;

/// Counts the names of the objects that are open, told what the parser tells its callback.
class NameCount {
 public:
  /// False if an object has more than most_names.
  bool fits(int depth, nlohmann::ordered_json::parse_event_t event) {
    using Event = nlohmann::ordered_json::parse_event_t;
    if (event == Event::object_start) names_.resize(std::size_t(depth)), names_.push_back(0);
    return event != Event::key || ++names_.at(std::size_t(depth) - 1) <= most_names;
  }

 private:
  std::vector<std::size_t> names_;  // [depth], of each open object; 0 for a list
};

}  // namespace t2t
