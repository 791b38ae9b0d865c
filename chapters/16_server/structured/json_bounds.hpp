// Bounds for JSON from outside, found before it is parsed.
#pragma once

#include <cstddef>
#include <string_view>

namespace t2t {

/// JSON that is read and written by recursion must not be nested without limit. And nlohmann's
/// ordered_json, which keeps an object's names in their order, searches all earlier names for each
/// new one: an object of n names takes time n².
struct JsonBounds {
  std::size_t levels;  // the most braces and brackets that are open at the same time
  std::size_t names;   // the most names in one object
};
inline constexpr std::size_t most_names = 1000;

/// One pass over the bytes. If the text is not JSON, parsing it will tell.
JsonBounds json_bounds(std::string_view text);

}  // namespace t2t
