#include "16_server/obeys.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "utf8_start.hpp"

namespace t2t {

using nlohmann::json;
using std::size_t;

static bool has_type(const json& value, const std::string& type) {
  if (type == "integer")
    return value.is_number() && std::floor(value.get<double>()) == value.get<double>();
  return (type == "object" && value.is_object()) || (type == "array" && value.is_array()) ||
         (type == "string" && value.is_string()) || (type == "number" && value.is_number()) ||
         (type == "boolean" && value.is_boolean()) || (type == "null" && value.is_null());
}

static bool obeys(const json& value, const json& schema, const json& whole);

static bool obeys_object(const json& value, const json& schema, const json& whole) {
  for (const json& name : schema.value("required", json::array()))
    if (!value.contains(name.get<std::string>())) return false;
  if (!schema.contains("properties")) return true;
  return std::ranges::all_of(value.items(), [&](const auto& item) {
    const json& properties = schema["properties"];
    return properties.contains(item.key()) && obeys(item.value(), properties[item.key()], whole);
  });
}

/// Whether the value is what a part of the whole schema says, as the schema's own standard has it.
static bool obeys(const json& value, const json& schema, const json& whole) {
  if (schema.contains("$ref")) {
    const json::json_pointer path(schema["$ref"].get<std::string>().substr(1));
    return obeys(value, whole.at(path), whole);
  }
  if (schema.contains("anyOf"))
    return std::ranges::any_of(schema["anyOf"],
                               [&](const json& s) { return obeys(value, s, whole); });
  if (schema.contains("const") && value != schema["const"]) return false;
  if (schema.contains("enum") && std::ranges::count(schema["enum"], value) == 0) return false;
  const json type = schema.value("type", json::array());
  const json types = type.is_array() ? type : json::array({type});
  if (!types.empty() &&
      std::ranges::none_of(types, [&](const json& name) { return has_type(value, name); }))
    return false;
  const auto is_between = [&](size_t size, const char* least, const char* most) {
    return size >= schema.value(least, size_t(0)) && size <= schema.value(most, size_t(1) << 40);
  };
  if (value.is_object()) return obeys_object(value, schema, whole);
  if (value.is_string())
    return is_between(count_characters(value.get<std::string>()), "minLength", "maxLength");
  if (!value.is_array()) return true;
  return is_between(value.size(), "minItems", "maxItems") &&
         std::ranges::all_of(value, [&](const json& item) {
           return !schema.contains("items") || obeys(item, schema["items"], whole);
         });
}

std::string wrong_in_text(const std::string& text, const std::string& schema) {
  const json value = json::parse(text, nullptr, false);
  if (value.is_discarded()) return "not JSON: " + text;
  const json whole = json::parse(schema);
  return obeys(value, whole, whole) ? "" : "against its schema: " + text;
}

}  // namespace t2t
