#include "support/refuses.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <regex>
#include <set>
#include <utility>

namespace t2t {

/// Every match of a pattern in a text.
static std::set<std::string> matches(const std::string& text, const std::regex& pattern) {
  std::set<std::string> found;
  for (std::sregex_iterator match(text.begin(), text.end(), pattern), end; match != end; ++match)
    found.insert(match->str());
  return found;
}

/// The words, and what stands between their dots.
static std::set<std::string> with_pieces(std::set<std::string> words) {
  std::set<std::string> pieces;
  for (const std::string& word : words)
    pieces.merge(matches(word, std::regex("[A-Za-z_][A-Za-z_0-9]*")));
  words.merge(pieces);
  return words;
}

/// The words, the same without the s of a plural, and "cols", as the code calls columns.
static std::set<std::string> with_singulars(std::set<std::string> words) {
  std::set<std::string> singulars;
  for (const std::string& word : words)
    if (word.size() > 2 && word.ends_with('s')) singulars.insert(word.substr(0, word.size() - 1));
  words.merge(singulars);
  if (words.contains("column")) words.insert("cols");
  return words;
}

/// The one word that a message ends with if it says what it got, "glu" of "got glu"; or none.
static std::set<std::string> word_it_got(const std::string& message) {
  std::smatch match;
  static const std::regex pattern(", got ([a-z_]{3,}[0-9]?)$");
  static const std::set<std::string> common = {"none",    "one",     "others",
                                               "another", "nothing", "both"};
  if (!std::regex_search(message, match, pattern) || common.contains(match[1].str())) return {};
  return {match[1].str()};
}

/// What a message names, of which one word must be said: the words before its first colon, those
/// between their dots, each that a number follows ("row 1", "H = 3"), and a word that it got.
static std::set<std::string> names_in(const std::string& message) {
  std::set<std::string> names =
      matches(message.substr(0, message.find(':')), std::regex("[A-Za-z_][A-Za-z_0-9.]*"));
  for (const char* small : {"of", "the", "a", "to"})
    if (names.size() > 1) names.erase(small);
  names = with_pieces(std::move(names));
  std::set<std::string> numbered =
      matches(message, std::regex("[A-Za-z_][A-Za-z_0-9]*(?=( =)? -?[0-9])"));
  for (const char* small : {"got", "wanted", "of", "to", "least", "most", "and", "or", "than", "at",
                            "from", "in", "is", "below", "above", "each", "for", "shape"})
    numbered.erase(small);
  names.merge(numbered);
  names.merge(word_it_got(message));
  return names;
}

/// The numbers in a text, as floats: 0.5 and 0.500000 are one number.
static std::set<float> numbers_in(const std::string& text) {
  std::set<float> numbers;
  for (const std::string& one : matches(text, std::regex("-?[0-9]+(\\.[0-9]+)?(e[-+]?[0-9]+)?")))
    numbers.insert(float(std::strtod(one.c_str(), nullptr)));
  return numbers;
}

/// The part of a message that says what it got, without words that have digits: "BF16", and without
/// the end of a table, which may be told as its length.
static std::string what_it_got(const std::string& message) {
  const std::size_t got = message.rfind("got ");
  const std::string part =
      got == message.npos ? message.substr(0, message.find(',')) : message.substr(got);
  return std::regex_replace(part, std::regex("[A-Za-z_]+[0-9]+[A-Za-z_0-9]*|ends at [0-9]+"), "");
}

bool in_own_words() { return std::getenv("T2T_OWN_WORDS") != nullptr; }

/// The numbers of ours that a message in other words must have.
struct NumbersToSay {
  std::set<float> numbers;
  bool all;  // or any of them
};
/// Of those that it got, any that it did not want, as the 2 of "wanted shape [10, 4], got [10, 2]";
/// if it wanted each of them too, all. Of a message that does not say what it got, any.
static NumbersToSay numbers_to_say(const std::string& ours) {
  const std::string got = what_it_got(ours);
  const std::size_t wanted = ours.find("wanted "), end = ours.rfind("got ");
  const std::set<float> all = numbers_in(got);
  if (end == ours.npos) return {all, false};
  if (wanted == ours.npos || end < wanted) return {all, true};
  const std::set<float> as_wanted = numbers_in(ours.substr(wanted, end - wanted));
  std::set<float> others;
  std::ranges::set_difference(all, as_wanted, std::inserter(others, others.end()));
  return others.empty() ? NumbersToSay{all, true} : NumbersToSay{others, false};
}

/// Whether a message says of which value it is by a name of its own: "C: wanted …", "T = 3 …" or a
/// letter of the book's legend, "C is 0".
static bool names_a_value(const std::string& said) {
  static const std::regex pattern(
      "^[A-Za-z_][A-Za-z_0-9.]*:|\\b[A-Za-z_][A-Za-z_0-9.]* = -?[0-9]|\\b[B-HK-NPSTV]\\b");
  return std::regex_search(said, pattern);
}

/// Whether these words have a name: as one word, or, if it is made of several, as "shared_gate" is,
/// as all of them.
static bool have_name(const std::set<std::string>& words, const std::string& name) {
  const std::set<std::string> pieces = matches(name, std::regex("[A-Za-z]{3,}"));
  const bool made_of_words = pieces.size() > 1 && std::regex_match(name, std::regex("[A-Za-z_]+"));
  return words.contains(name) || (made_of_words && std::ranges::includes(words, pieces));
}

bool names_the_same(const std::string& said, const std::string& ours) {
  const std::set<std::string> words =
      with_singulars(with_pieces(matches(said, std::regex("[A-Za-z_][A-Za-z_0-9.]*"))));
  const std::set<std::string> names = with_singulars(names_in(ours));
  const bool named = std::ranges::any_of(names, [&](const auto& n) { return have_name(words, n); });
  const auto [numbers, all] = numbers_to_say(ours);
  const std::set<float> has = numbers_in(said);
  const auto said_it = [&](float n) { return has.contains(n); };
  const bool numbered = all || numbers.empty() ? std::ranges::all_of(numbers, said_it)
                                               : std::ranges::any_of(numbers, said_it);
  return said == ours || ((named || names_a_value(said)) && numbered);
}

std::string what_to_name(const std::string& ours) {
  std::string text =
      fmt::format(", or in your words one that names {}", fmt::join(names_in(ours), " or "));
  if (const auto [numbers, all] = numbers_to_say(ours); !numbers.empty())
    text += fmt::format(" and has {:g}", fmt::join(numbers, all ? " and " : " or "));
  return text;
}

RefusedCall refusal_of(const std::function<void()>& call, const std::string& message,
                       bool (*is_of_type)(const std::exception&)) {
  const std::string wanted = "wanted a refusal, \"" + message + "\"" +
                             (in_own_words() ? what_to_name(message) : "") + "; ";
  try {
    call();
  } catch (const std::exception& error) {
    const std::string said = error.what();
    if (!is_of_type(error))
      return {false, wanted + "got an exception of another type, \"" + said + "\""};
    return {in_own_words() ? names_the_same(said, message) : said == message,
            wanted + "got \"" + said + "\""};
  }
  return {false, wanted + "got no exception"};
}

}  // namespace t2t
