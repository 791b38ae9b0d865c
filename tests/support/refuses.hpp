// How a test checks that a call is refused: by the exception's type and by its message. Our own
// parts are held to the whole message. With T2T_OWN_WORDS in the environment, as ./learn check sets
// it, a message may be in other words, and must still name the value and say what it got.
#pragma once

#include <exception>
#include <functional>
#include <ostream>
#include <stdexcept>
#include <string>

namespace t2t {

struct RefusedCall {
  bool as_wanted = false;
  std::string report;  // what was wanted and what happened
  explicit operator bool() const { return as_wanted; }
};

inline std::ostream& operator<<(std::ostream& out, const RefusedCall& r) { return out << r.report; }

/// Whether messages may be in other words.
bool in_own_words();

/// Whether `said` names something that the message `ours` names, a word before its first colon or
/// one that a number follows, or a value by a name of its own ("C: …", "T = 3 …"), and has the
/// numbers of what ours got and did not want: those after its last "got", or without one those
/// before its first comma.
bool names_the_same(const std::string& said, const std::string& ours);

/// What a message in other words must contain, in words.
std::string what_to_name(const std::string& ours);

/// Calls `call`, which must throw an exception of a type, with this message.
RefusedCall refusal_of(const std::function<void()>& call, const std::string& message,
                       bool (*is_of_type)(const std::exception&));

template <class Type>
RefusedCall refusal_of(const std::function<void()>& call, const std::string& message) {
  return refusal_of(call, message, [](const std::exception& error) {
    return dynamic_cast<const Type*>(&error) != nullptr;
  });
}

}  // namespace t2t

/// CHECKs that the call throws a std::invalid_argument, or a Type, with this message.
#define REFUSES(call, message) REFUSES_AS(call, message, std::invalid_argument)
#define REFUSES_AS(call, message, Type) \
  CHECK(t2t::refusal_of<Type>([&] { static_cast<void>(call); }, message))
