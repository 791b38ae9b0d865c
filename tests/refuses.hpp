// How a test checks that a call is refused: by the exception's type and by its message. Our own
// parts are held to the whole message. With T2T_OWN_WORDS in the environment, as ./learn check sets
// it, a message may be in other words, and must still name the value and say what it got.
#pragma once

#include <cctype>
#include <cstdlib>
#include <ostream>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>

namespace t2t {

struct Refusal {
  bool as_wanted = false;
  std::string report;  // what was wanted and what happened
  explicit operator bool() const { return as_wanted; }
};

inline std::ostream& operator<<(std::ostream& out, const Refusal& r) { return out << r.report; }

/// The words and numbers of a text: runs of letters, digits and underscores, a number with its
/// point and sign.
inline std::set<std::string> words_of(std::string_view text) {
  std::set<std::string> words;
  std::string word;
  const auto is_digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ' ', next = i + 1 < text.size() ? text[i + 1] : ' ';
    const bool in_number = is_digit(next) && (c == '-' || (c == '.' && !word.empty()));
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '_' || in_number) {
      word += c;
    } else if (!word.empty()) {
      words.insert(std::move(word));
      word.clear();
    }
  }
  return words;
}

/// Whether `said` names what the message `ours` names, a word before its first colon, and has the
/// numbers of what ours got: those after its last "got", or without one those before its first
/// comma.
inline bool names_the_same(std::string_view said, std::string_view ours) {
  const std::set<std::string> words = words_of(said);
  bool named = false;
  for (const std::string& word : words_of(ours.substr(0, ours.find(':'))))
    named = named || (word != "of" && word != "the" && words.contains(word));
  const std::size_t got = ours.rfind("got ");
  for (const std::string& word :
       words_of(got == ours.npos ? ours.substr(0, ours.find(',')) : ours.substr(got)))
    if (word.find_first_of("0123456789") != word.npos && !words.contains(word)) return false;
  return named;
}

/// Calls `call`, which must throw a Type with this message.
template <class Type, class Call>
Refusal refusal_of(Call call, const std::string& message) {
  const std::string wanted = "wanted a refusal, \"" + message + "\"; ";
  try {
    call();
  } catch (const Type& error) {
    const std::string said = error.what();
    const bool own_words = std::getenv("T2T_OWN_WORDS") != nullptr;
    return {own_words ? names_the_same(said, message) : said == message,
            wanted + "got \"" + said + "\""};
  } catch (const std::exception& error) {
    return {false, wanted + "got an exception of another type, \"" + error.what() + "\""};
  }
  return {false, wanted + "got no exception"};
}

}  // namespace t2t

/// CHECKs that the call throws a std::invalid_argument, or a Type, with this message.
#define REFUSES(call, message) REFUSES_AS(call, message, std::invalid_argument)
#define REFUSES_AS(call, message, Type) \
  CHECK(t2t::refusal_of<Type>([&] { static_cast<void>(call); }, message))
