#include "16_server/api/headers.hpp"

#include <algorithm>

namespace t2t {

std::string lower_case(std::string_view text) {
  std::string small(text);
  for (char& c : small)
    if (c >= 'A' && c <= 'Z') c = char(c - 'A' + 'a');
  return small;
}

static std::string_view without_blanks(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
}

bool is_json_type(std::string_view content_type) {
  const std::string_view type = content_type.substr(0, content_type.find(';'));
  return lower_case(without_blanks(type)) == "application/json";
}

std::optional<std::string_view> bearer_key(std::string_view authorization) {
  const std::size_t end = std::min(authorization.find(' '), authorization.size());
  if (lower_case(authorization.substr(0, end)) != "bearer") return {};
  return without_blanks(authorization.substr(end));
}

}  // namespace t2t
