#include "16_server/structured/json_number.hpp"

namespace t2t {

using State = JsonNumber::State;

/// The state that a digit leads to. After a zero at the beginning no digit may come.
static State after_digit(State state, bool is_zero) {
  switch (state) {
    case State::begin:
    case State::minus:
      return is_zero ? State::zero : State::whole;
    case State::point:
      return State::fraction;
    case State::e:
    case State::sign:
      return State::exponent;
    default:
      return state;
  }
}

static bool read_digit(JsonNumber& n, bool is_zero) {
  const State next = after_digit(n.state, is_zero);
  const std::uint8_t most = next == State::exponent ? most_exponent_digits : most_digits;
  if (n.state == State::zero || (next == n.state && n.digits == most)) return false;
  n.digits = next == n.state ? n.digits + 1 : 1;
  n.state = next;
  return true;
}

bool step_number(JsonNumber& n, unsigned char byte) {
  if (byte >= '0' && byte <= '9') return read_digit(n, byte == '0');
  const bool is_whole = n.state == State::zero || n.state == State::whole;
  const auto go_to = [&](State state, bool may_come) {
    if (may_come) n.state = state, n.digits = 0;
    return may_come;
  };
  if (byte == '-' && n.state == State::begin) return go_to(State::minus, true);
  if (byte == '-' || byte == '+') return go_to(State::sign, n.state == State::e);
  if (byte == '.') return go_to(State::point, is_whole && !n.only_whole);
  if (byte == 'e' || byte == 'E')
    return go_to(State::e, (is_whole || n.state == State::fraction) && !n.only_whole);
  return false;
}

bool may_end(const JsonNumber& n) {
  return n.state == State::zero || n.state == State::whole || n.state == State::fraction ||
         n.state == State::exponent;
}

}  // namespace t2t
