// A JSON text, byte by byte: which byte may come next, and where the text may end.
//
//   state  = where the text is, and a stack of the objects and arrays that are open there
//   step   : state, byte → state, or no
//
// A grammar (json_grammar.hpp) says what the text may be: any JSON, or what a schema allows. The
// texts are those of RFC 8259 within bounds, which a parser may set: 32 open objects and arrays,
// json_number.hpp's digits, and runs of at most 20 blanks, none after the text's value. Objects and
// arrays take one stack entry each, so a state has a fixed size and no memory of its own:
// token_filter.hpp copies it for each byte that it tries.
#pragma once

#include <array>
#include <cstdint>

#include "16_server/structured/json_grammar.hpp"
#include "16_server/structured/json_number.hpp"
#include "16_server/structured/json_string.hpp"

namespace t2t {

inline constexpr std::uint8_t most_depth = 32, most_blanks = 20;

/// A place in a text. The place before its first byte is JsonState{}.
struct JsonState {
  enum class At : std::uint8_t {
    value,       // a value begins
    first_item,  // after [
    first_key,   // after {
    key,         // after a comma of an object
    key_string,  // inside of a key that is any string
    key_text,    // inside of a key that is one of the rule's texts
    colon,       // after a key: a colon must follow
    string,      // inside of a value
    number,
    text,
    after,  // a value of an object or an array has ended
    end,    // the text's value has ended
  };
  /// An object or an array that has begun and not ended.
  struct Open {
    std::uint32_t rule = 0;
    std::uint32_t count = 0;  // its items so far, or the first property that may still come

    bool operator==(const Open&) const = default;
  };
  At at = At::value;
  std::uint8_t depth = 0;   // how many are open
  std::uint8_t blanks = 0;  // that have just come
  JsonString string = {};
  JsonNumber number = {};
  std::uint32_t rule = 0;               // of the value that begins or is being read
  std::uint32_t characters = 0;         // of a string whose length is bounded
  std::uint32_t which = 0, offset = 0;  // a text that begins with what has come, and how much has
  std::array<Open, most_depth> open = {};

  /// Whether the same bytes may come from here on.
  bool operator==(const JsonState& other) const;
};

/// Whether this byte may come after the state's text; if so, the state advances by it. A state that
/// has refused a byte must not be used again.
bool step_json(const JsonGrammar& grammar, JsonState& state, unsigned char byte);
/// Whether the text may end here.
bool is_complete(const JsonGrammar& grammar, const JsonState& state);

}  // namespace t2t
