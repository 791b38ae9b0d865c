#include "16_server/api/fields.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "16_server/structured/json_bounds.hpp"
#include "utf8_start.hpp"

namespace t2t {

using json = nlohmann::ordered_json;

/// A value in a message: short, and not its parts.
static std::string shown(const json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return value.empty() ? "an empty list" : "a list";
  if (value.is_string()) return '"' + printable(value.get<std::string>(), 40) + '"';
  return value.dump();
}

RequestError::RequestError(const std::string& message, std::string wrong_field,
                           std::string error_code, int http_status)
    : std::invalid_argument(message),
      field(std::move(wrong_field)),
      code(std::move(error_code)),
      status(http_status) {}

Fields::Fields(const json& object, std::string path) : object_(object), path_(std::move(path)) {
  if (object.is_object()) return;
  const std::string field = path_.substr(0, path_.empty() ? 0 : path_.size() - 1);
  throw RequestError(fmt::format("{}: wanted an object, got {}", field.empty() ? "the body" : field,
                                 shown(object)),
                     field);
}

void Fields::refuse(const std::string& name, const std::string& wanted, const json& got) const {
  throw RequestError(fmt::format("{}{}: wanted {}, got {}", path_, name, wanted, shown(got)),
                     path_ + name);
}

const json* Fields::any(const std::string& name) {
  known_.insert(name);
  const auto found = object_.find(name);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

std::optional<double> Fields::number(const std::string& name, double min, double max) {
  const json* value = any(name);
  if (!value) return {};
  const double got = value->is_number() ? value->get<double>() : std::nan("");
  if (!(got >= min && got <= max))
    refuse(name, fmt::format("a number from {} to {}", min, max), *value);
  return got;
}

std::optional<std::size_t> Fields::integer(const std::string& name, std::size_t min,
                                           std::size_t max) {
  const json* value = any(name);
  if (!value) return {};
  const bool fits = value->is_number_integer() && value->get<double>() >= 0 &&
                    value->get<std::size_t>() >= min && value->get<std::size_t>() <= max;
  if (!fits) refuse(name, fmt::format("an integer from {} to {}", min, max), *value);
  return value->get<std::size_t>();
}

std::optional<std::string> Fields::string(const std::string& name) {
  const json* value = any(name);
  if (!value) return {};
  if (!value->is_string()) refuse(name, "a string", *value);
  return value->get<std::string>();
}

bool Fields::boolean(const std::string& name) {
  const json* value = any(name);
  if (value && !value->is_boolean()) refuse(name, "true or false", *value);
  return value && value->get<bool>();
}

void Fields::ignore(std::initializer_list<const char*> names) {
  known_.insert(names.begin(), names.end());
}

void Fields::expect_no_others() const {
  for (const auto& [name, value] : object_.items())
    if (!value.is_null() && !known_.contains(name))
      throw RequestError(
          fmt::format("{}{}: this server has no such field", path_, printable(name, 40)),
          path_ + printable(name, 40));
}

json parse_body(const std::string& body) {
  static constexpr std::size_t most_levels = 64;
  const JsonBounds bounds = json_bounds(body);
  if (bounds.levels > most_levels)
    throw RequestError(
        fmt::format("the body: wanted at most {} levels of lists and objects", most_levels), "");
  if (bounds.names > most_names)
    throw RequestError(fmt::format("the body: wanted at most {} names in an object", most_names),
                       "");
  try {
    return json::parse(body);
  } catch (const json::exception& error) {
    std::string_view why = error.what();  // "[json.exception.parse_error.101] parse error at …"
    why.remove_prefix(std::min(why.find("] ") + 2, why.size()));
    throw RequestError("the body is not JSON: " + printable(why, 200), "");
  }
}

}  // namespace t2t
