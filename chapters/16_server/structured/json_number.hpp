// A JSON number, byte by byte: which byte may come next, and where the number may end.
//
//   -?  (0 | 1–9 digits)  (. digits)?  ((e | E)  (+ | -)?  digits)?
//
// This is the grammar of RFC 8259, section 6, which also lets a parser bound a number's size. The
// bounds here are 20 digits before the point, 20 after it, and 2 in the exponent, so that a model
// can't write digits forever, and each number is a finite double.
#pragma once

#include <cstdint>

namespace t2t {

inline constexpr std::uint8_t most_digits = 20, most_exponent_digits = 2;

/// A place in a number.
struct JsonNumber {
  enum class State : std::uint8_t { begin, minus, zero, whole, point, fraction, e, sign, exponent };
  State state = State::begin;
  std::uint8_t digits = 0;  // of this part, so far
  bool only_whole = false;  // neither a point nor an exponent may come

  bool operator==(const JsonNumber&) const = default;
};

/// Whether this byte may come. If so, the number advances by it; if not, it is unchanged.
bool step_number(JsonNumber& number, unsigned char byte);
/// Whether the bytes so far are a complete number of the grammar.
bool may_end(const JsonNumber& number);

}  // namespace t2t
