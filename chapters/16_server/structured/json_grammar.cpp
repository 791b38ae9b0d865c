#include "16_server/structured/json_grammar.hpp"

#include <algorithm>

namespace t2t {

bool may_begin(const JsonGrammar& grammar, const JsonRule& rule, unsigned char byte) {
  using Kind = JsonRule::Kind;
  switch (rule.kind) {
    case Kind::choice:
      return std::ranges::any_of(rule.rules, [&](std::uint32_t other) {
        return may_begin(grammar, grammar.rules[other], byte);
      });
    case Kind::object:
    case Kind::map:
      return byte == '{';
    case Kind::array:
      return byte == '[';
    case Kind::string:
      return byte == '"';
    case Kind::number:
    case Kind::integer:
      return byte == '-' || (byte >= '0' && byte <= '9');
    case Kind::text:
      return std::ranges::any_of(rule.texts, [&](const std::string& text) {
        return static_cast<unsigned char>(text[0]) == byte;
      });
  }
  return false;
}

std::uint32_t add_any_value(JsonGrammar& grammar) {
  using Kind = JsonRule::Kind;
  const auto any = std::uint32_t(grammar.rules.size());
  grammar.rules.push_back({Kind::choice, {any + 1, any + 2, any + 3, any + 4, any + 5}});
  grammar.rules.push_back({Kind::map, {any}});
  grammar.rules.push_back({Kind::array, {any}});
  grammar.rules.push_back({Kind::string});
  grammar.rules.push_back({Kind::number});
  grammar.rules.push_back({Kind::text, {}, {"true", "false", "null"}});
  return any;
}

JsonGrammar any_json() {
  JsonGrammar grammar;
  add_any_value(grammar);
  return grammar;
}

}  // namespace t2t
