#include "16_server/structured/json_bounds.hpp"

#include <algorithm>
#include <vector>

namespace t2t {

JsonBounds json_bounds(std::string_view text) {
  JsonBounds most{0, 0};
  std::vector<std::size_t> names;  // of each object that is open; 0 for a list
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string && c == '\\') {
      ++i;  // the next character is not the string's end
    } else if (c == '"') {
      in_string = !in_string;
    } else if (!in_string && (c == '{' || c == '[')) {
      names.push_back(0);
      most.levels = std::max(most.levels, names.size());
    } else if (!in_string && c == ':' && !names.empty()) {
      most.names = std::max(most.names, ++names.back());
    } else if (!in_string && (c == '}' || c == ']') && !names.empty()) {
      names.pop_back();
    }
  }
  return most;
}

}  // namespace t2t
