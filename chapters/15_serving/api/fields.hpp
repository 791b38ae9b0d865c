// The fields of a JSON object that somebody else wrote: each is read by its name, with its type and
// its range, and what nobody has read is refused at the end. Objects keep the order of their names:
// in a schema it is the order of the answer.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>

namespace t2t {

class Fields {
 public:
  /// `path` goes before a field's name in messages, as in "messages[0].". Throws
  /// std::invalid_argument unless it is an object. The object must outlive this.
  Fields(const nlohmann::ordered_json& object, std::string path);

  // A field that is missing or null counts as not given. Each throws std::invalid_argument, naming
  // the field, for a value of another type or out of its range.
  std::optional<double> number(const std::string& name, double least, double most);
  std::optional<std::size_t> whole(const std::string& name, std::size_t least, std::size_t most);
  std::optional<std::string> text(const std::string& name);
  bool yes(const std::string& name);
  const nlohmann::ordered_json* any(const std::string& name);

  /// Fields that change no answer: whatever they hold is not used.
  void ignore(std::initializer_list<const char*> names);
  /// Throws std::invalid_argument, naming it, if there is a field that nobody has asked for.
  void expect_no_others() const;

  /// Throws std::invalid_argument("path.name: wanted …, got …").
  [[noreturn]] void refuse(const std::string& name, const std::string& wanted,
                           const nlohmann::ordered_json& got) const;

 private:
  const nlohmann::ordered_json& object_;
  std::string path_;
  std::set<std::string> known_;
};

/// The JSON of a request's body. Throws std::invalid_argument, with the place, for what is not
/// JSON, for one that is nested deeper than 64 levels, and for an object of more than 1000 names.
nlohmann::ordered_json parse_body(const std::string& body);

}  // namespace t2t
