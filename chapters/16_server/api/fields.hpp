// The fields of a JSON object from outside: each is read by its name, with its type and its range,
// and unread fields are refused at the end. Objects keep the order of their names, which in a
// schema is the order of the answer.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>

namespace t2t {

/// Why a request is refused, and with which HTTP status.
struct RequestError : std::invalid_argument {
  std::string field;  // "messages[0].role"; empty if no field is wrong by itself
  std::string code;   // OpenAI's name for the reason, where clients look for it; may be empty
  int status;

  RequestError(const std::string& message, std::string wrong_field, std::string error_code = {},
               int http_status = 400);
};

class Fields {
 public:
  /// `path` goes before a field's name in messages, as in "messages[0].". Throws RequestError
  /// unless it is an object. The object must outlive this.
  Fields(const nlohmann::ordered_json& object, std::string path);

  // A field that is missing or null counts as not given. Each throws RequestError, naming the
  // field, for a value of another type or out of its range.
  std::optional<double> number(const std::string& name, double min, double max);
  std::optional<std::size_t> integer(const std::string& name, std::size_t min, std::size_t max);
  std::optional<std::string> string(const std::string& name);
  bool boolean(const std::string& name);
  const nlohmann::ordered_json* any(const std::string& name);

  /// Fields that change no answer: their values are not used.
  void ignore(std::initializer_list<const char*> names);
  /// Throws RequestError, naming it, if there is a field that was not read.
  void expect_no_others() const;

  /// Throws RequestError("path.name: wanted …, got …").
  [[noreturn]] void refuse(const std::string& name, const std::string& wanted,
                           const nlohmann::ordered_json& got) const;

 private:
  const nlohmann::ordered_json& object_;
  std::string path_;
  std::set<std::string> known_;
};

/// The JSON of a request's body. Throws RequestError, with the place, for a body that is not JSON
/// or is nested deeper than 64 levels, and for an object of more than 1000 names.
nlohmann::ordered_json parse_body(const std::string& body);

}  // namespace t2t
