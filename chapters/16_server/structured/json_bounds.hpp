// Bounds for JSON that somebody else wrote, found before it is parsed.
#pragma once

#include <cstddef>
#include <string_view>

namespace t2t {

/// What is read and written by recursion may not be nested at will. And nlohmann's ordered_json,
/// which keeps the names of an object in the order in which they come, looks for each new one among
/// all those before it: an object of n names takes time n².
struct JsonBounds {
  std::size_t levels;  // the most braces and brackets that are open at the same time
  std::size_t names;   // the most names in one object
};
inline constexpr std::size_t most_names = 1000;

/// One pass over the bytes. If the text is not JSON, parsing it will tell.
JsonBounds json_bounds(std::string_view text);

}  // namespace t2t
