// The solutions to the problems on paper of docs/16_server.md.
#include "program/solutions.hpp"

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "16_server/answer/answer_text.hpp"
#include "16_server/structured/json_automaton.hpp"

namespace t2t {

static Solution held_back() {
  StopStrings stops({"END"});
  const std::string first = stops.push("an E"), second = stops.push("N"), third = stops.push("d.");
  return {
      "held back",
      fmt::format("After \"an E\", {} characters are shown, since \"E\" may begin the stop. After "
                  "\"N\", nothing is. \"d.\" shows that it was not the stop, and \"{}\" follows.",
                  first.size(), second + third)};
}

static Solution allowed_bytes() {
  const JsonGrammar grammar = any_json();
  JsonState state;
  for (const char byte : std::string_view("[1")) step_json(grammar, state, std::uint8_t(byte));
  std::string allowed;
  for (const char byte : std::string_view("]},:\"0e.")) {
    JsonState next = state;
    if (step_json(grammar, next, std::uint8_t(byte))) allowed += fmt::format(" {}", byte);
  }
  return {"allowed bytes",
          fmt::format("These may come:{}. A number may continue with a digit, a point or an "
                      "exponent, or end before a comma or the bracket.",
                      allowed)};
}

std::vector<Solution> solutions() { return {held_back(), allowed_bytes()}; }

}  // namespace t2t
