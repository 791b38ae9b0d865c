#include "16_server/structured/json_automaton.hpp"

#include <algorithm>

namespace t2t {

using At = JsonState::At;
using Kind = JsonRule::Kind;

bool JsonState::operator==(const JsonState& other) const {
  return at == other.at && depth == other.depth && blanks == other.blanks &&
         string == other.string && number == other.number && rule == other.rule &&
         characters == other.characters && which == other.which && offset == other.offset &&
         std::equal(open.begin(), open.begin() + depth, other.open.begin());
}

/// Which of a rule's texts are possible: all, or the properties that may come next. These end with
/// the first required one.
struct Candidates {
  std::size_t begin, end;
};
static Candidates candidates(const JsonRule& rule, const JsonState& s) {
  if (rule.kind != Kind::object) return {0, rule.texts.size()};
  std::size_t end = s.open[s.depth - 1].count;
  while (end < rule.texts.size() && !rule.required[end]) ++end;
  return {s.open[s.depth - 1].count, std::min(end + 1, rule.texts.size())};
}

/// Advances by a byte in one of the texts. Those still possible begin like text `which`.
static bool step_text(const JsonRule& rule, JsonState& s, unsigned char byte) {
  const auto [begin, end] = candidates(rule, s);
  for (std::size_t i = begin; i < end; ++i) {
    const std::string& text = rule.texts[i];
    if (text.size() <= s.offset || static_cast<unsigned char>(text[s.offset]) != byte) continue;
    if (s.offset > 0 && text.compare(0, s.offset, rule.texts[s.which], 0, s.offset) != 0) continue;
    s.which = std::uint32_t(i), ++s.offset;
    return true;
  }
  return false;
}

/// Whether what has come is one of the texts, up to its end.
static bool is_whole_text(const JsonRule& rule, const JsonState& s) {
  const auto [begin, end] = candidates(rule, s);
  return std::any_of(rule.texts.begin() + long(begin), rule.texts.begin() + long(end),
                     [&](const std::string& text) {
                       return text.size() == s.offset &&
                              text.compare(0, s.offset, rule.texts[s.which], 0, s.offset) == 0;
                     });
}

/// A value has ended: the text has, or an item or a property of what is open.
static void end_value(const JsonGrammar& grammar, JsonState& s) {
  s.at = s.depth == 0 ? At::end : At::after;
  s.which = s.offset = s.characters = 0, s.rule = 0, s.number = {}, s.string = {};
  if (s.depth == 0) return;
  JsonState::Open& open = s.open[s.depth - 1];
  if (grammar.rules[open.rule].kind == Kind::array && grammar.rules[open.rule].is_bounded())
    ++open.count;
}

static bool open_one(JsonState& s, At at) {
  if (s.depth == most_depth) return false;
  s.open[s.depth++] = {s.rule, 0};
  s.at = at;
  return true;
}

static bool close_one(const JsonGrammar& grammar, JsonState& s) {
  --s.depth;
  end_value(grammar, s);
  return true;
}

static bool begin_value(const JsonGrammar& grammar, JsonState& s, unsigned char byte) {
  const JsonRule* rule = &grammar.rules[s.rule];
  if (!may_begin(grammar, *rule, byte)) return false;
  while (rule->kind == Kind::choice) {
    s.rule = *std::ranges::find_if(
        rule->rules, [&](std::uint32_t i) { return may_begin(grammar, grammar.rules[i], byte); });
    rule = &grammar.rules[s.rule];
  }
  switch (rule->kind) {
    case Kind::object:
    case Kind::map:
      return open_one(s, At::first_key);
    case Kind::array:
      return open_one(s, At::first_item);
    case Kind::string:
      s.at = At::string;
      return true;
    case Kind::text:
      s.at = At::text;
      return step_text(*rule, s, byte);
    default:
      s.at = At::number, s.number.only_whole = rule->kind == Kind::integer;
      return step_number(s.number, byte);
  }
}

/// A key begins, or goes on if it is one of the rule's.
static bool step_key(const JsonRule& rule, JsonState& s, unsigned char byte) {
  if (rule.kind == Kind::map) {
    s.at = At::key_string;
    return byte == '"';
  }
  if (!step_text(rule, s, byte)) return false;
  s.at = At::key_text;
  if (!is_whole_text(rule, s)) return true;
  s.open[s.depth - 1].count = s.which + 1;
  s.rule = rule.rules[s.which];
  s.at = At::colon, s.which = s.offset = 0;
  return true;
}

/// Whether an object or an array has all that it must have.
static bool may_close(const JsonRule& rule, const JsonState& s) {
  const JsonState::Open& open = s.open[s.depth - 1];
  if (rule.kind == Kind::array) return open.count >= rule.least;
  return std::find(rule.required.begin() + long(open.count), rule.required.end(), true) ==
         rule.required.end();
}

/// After a value of an object or an array: the next one, or the end.
static bool step_after(const JsonGrammar& grammar, JsonState& s, unsigned char byte) {
  const JsonState::Open& open = s.open[s.depth - 1];
  const JsonRule& rule = grammar.rules[open.rule];
  const bool is_array = rule.kind == Kind::array;
  if (byte == (is_array ? ']' : '}')) return may_close(rule, s) && close_one(grammar, s);
  if (byte != ',') return false;
  s.at = is_array ? At::value : At::key;
  if (is_array) s.rule = rule.rules[0];
  return is_array ? open.count < rule.most
                  : rule.kind == Kind::map || open.count < rule.texts.size();
}

/// A byte between the values, or one with which a value begins.
static bool step_between(const JsonGrammar& grammar, JsonState& s, unsigned char byte) {
  const JsonRule& open = grammar.rules[s.depth > 0 ? s.open[s.depth - 1].rule : 0];
  switch (s.at) {
    case At::first_item:
      if (byte == ']') return may_close(open, s) && close_one(grammar, s);
      s.rule = open.rules[0];
      return open.most > 0 && begin_value(grammar, s, byte);
    case At::first_key:
      if (byte == '}') return may_close(open, s) && close_one(grammar, s);
      return step_key(open, s, byte);
    case At::key:
    case At::key_text:
      return step_key(open, s, byte);
    case At::colon:
      s.at = At::value;
      if (open.kind == Kind::map) s.rule = open.rules[0];
      return byte == ':';
    case At::after:
      return step_after(grammar, s, byte);
    case At::value:
      return begin_value(grammar, s, byte);
    default:
      return false;
  }
}

/// A string that is a value: its length may be bounded.
static bool step_value_string(const JsonGrammar& grammar, JsonState& s, unsigned char byte) {
  const JsonRule& rule = grammar.rules[s.rule];
  if (rule.is_bounded() && s.string.state == JsonString::State::between) {
    if (byte == '"' ? s.characters < rule.least : s.characters == rule.most) return false;
    ++s.characters;
  }
  if (!step_string(s.string, byte)) return false;
  if (s.string.state == JsonString::State::end) end_value(grammar, s);
  return true;
}

static bool step_key_string(JsonState& s, unsigned char byte) {
  if (!step_string(s.string, byte)) return false;
  if (s.string.state == JsonString::State::end) s.at = At::colon, s.string = {};
  return true;
}

static bool is_blank(unsigned char byte) {
  return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}

bool step_json(const JsonGrammar& grammar, JsonState& s, unsigned char byte) {
  if (s.at == At::string) return step_value_string(grammar, s, byte);
  if (s.at == At::key_string) return step_key_string(s, byte);
  if (s.at == At::key_text) return step_between(grammar, s, byte);
  // A number or a text that has no mark at its end is over when something else comes.
  if (s.at == At::number) {
    if (step_number(s.number, byte)) return true;
    if (!may_end(s.number)) return false;
    end_value(grammar, s);
  } else if (s.at == At::text) {
    const JsonRule& rule = grammar.rules[s.rule];
    if (step_text(rule, s, byte)) return true;
    if (!is_whole_text(rule, s)) return false;
    end_value(grammar, s);
  }
  if (is_blank(byte)) return s.at != At::end && ++s.blanks <= most_blanks;
  s.blanks = 0;
  return step_between(grammar, s, byte);
}

bool is_complete(const JsonGrammar& grammar, const JsonState& s) {
  if (s.depth > 0) return false;
  if (s.at == At::number) return may_end(s.number);
  if (s.at == At::text) return is_whole_text(grammar.rules[s.rule], s);
  return s.at == At::end;
}

}  // namespace t2t
