#include "program/flag_values.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <stdexcept>

#include "utf8_start.hpp"

namespace t2t {

/// Parsed here, since CLI11's messages for "0", "-3" and "many" would not say what is wanted.
std::size_t parse_size(const std::string& flag, const std::string& text, std::size_t least) {
  std::size_t used = 0;
  long long value = 0;
  try {
    value = std::stoll(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  if (used != text.size() || value < static_cast<long long>(least) || value > 1 << 30)
    throw std::invalid_argument(fmt::format("{}: wanted an integer from {} to {}, got {}", flag,
                                            least, 1 << 30,
                                            printable(text, most_quoted_of_a_flag)));
  return std::size_t(value);
}

/// Refuses NaN and infinity, which would otherwise spoil results without a message.
float parse_number(const std::string& flag, const std::string& text) {
  char* end = nullptr;
  errno = 0;
  const float value = std::strtof(text.c_str(), &end);
  const bool outside = errno == ERANGE && (value == 0 || std::isinf(value));
  const bool whole = !text.empty() && end == text.c_str() + text.size();
  if (whole && !outside && std::isfinite(value)) return value;
  throw std::invalid_argument(fmt::format("{}: wanted a number{}, got {}", flag,
                                          outside ? " that a float can hold" : "",
                                          printable(text, most_quoted_of_a_flag)));
}

}  // namespace t2t
