// What a JSON text may be: a list of rules, one for each kind of value that may occur.
//
//   rule 0 is the whole text's; an object has a rule for the value of each property, an array one
//   for its items, and a choice several, one of which the value's first byte selects
//
// json_automaton.hpp follows the rules byte by byte; schema.hpp derives them from a JSON schema.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace t2t {

inline constexpr std::uint32_t no_most = std::numeric_limits<std::uint32_t>::max();

struct JsonRule {
  enum class Kind {
    choice,  // one of `rules`, no two of which have a first byte in common
    object,  // its properties in this order, and no others: texts, rules and required, one of each
    map,     // an object with any keys, whose values follow rules[0]
    array,   // its items follow rules[0]
    string,
    number,
    integer,  // a number without point and exponent
    text,     // one of `texts`, byte for byte
  };
  Kind kind;
  std::vector<std::uint32_t> rules = {};    // indices of other rules
  std::vector<std::string> texts = {};      // names are written with their quotes
  std::vector<bool> required = {};          // of an object
  std::uint32_t least = 0, most = no_most;  // items of an array, characters of a string

  bool is_bounded() const { return least > 0 || most != no_most; }
};

struct JsonGrammar {
  std::vector<JsonRule> rules;
};

/// Whether a value of this rule may begin with this byte.
bool may_begin(const JsonGrammar& grammar, const JsonRule& rule, unsigned char byte);

/// Adds the rules of any value of JSON, and returns the index of the first of them.
std::uint32_t add_any_value(JsonGrammar& grammar);
/// A text that is any value of JSON.
JsonGrammar any_json();

}  // namespace t2t
