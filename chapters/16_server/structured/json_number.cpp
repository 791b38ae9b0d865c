#include "16_server/structured/json_number.hpp"

namespace t2t {

using Part = JsonNumber::Part;

/// The part that a digit leads to. After a zero at the beginning no digit may come.
static Part after_digit(Part part, bool is_zero) {
  switch (part) {
    case Part::begin:
    case Part::minus:
      return is_zero ? Part::zero : Part::whole;
    case Part::point:
      return Part::fraction;
    case Part::e:
    case Part::sign:
      return Part::exponent;
    default:
      return part;
  }
}

static bool read_digit(JsonNumber& n, bool is_zero) {
  const Part next = after_digit(n.part, is_zero);
  const std::uint8_t most = next == Part::exponent ? most_exponent_digits : most_digits;
  if (n.part == Part::zero || (next == n.part && n.digits == most)) return false;
  n.digits = next == n.part ? n.digits + 1 : 1;
  n.part = next;
  return true;
}

bool step_number(JsonNumber& n, unsigned char byte) {
  if (byte >= '0' && byte <= '9') return read_digit(n, byte == '0');
  const bool is_whole = n.part == Part::zero || n.part == Part::whole;
  const auto go_to = [&](Part part, bool may_come) {
    if (may_come) n.part = part, n.digits = 0;
    return may_come;
  };
  if (byte == '-' && n.part == Part::begin) return go_to(Part::minus, true);
  if (byte == '-' || byte == '+') return go_to(Part::sign, n.part == Part::e);
  if (byte == '.') return go_to(Part::point, is_whole && !n.only_whole);
  if (byte == 'e' || byte == 'E')
    return go_to(Part::e, (is_whole || n.part == Part::fraction) && !n.only_whole);
  return false;
}

bool may_end(const JsonNumber& n) {
  return n.part == Part::zero || n.part == Part::whole || n.part == Part::fraction ||
         n.part == Part::exponent;
}

}  // namespace t2t
