#include "15_serving/structured/schema.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "15_serving/structured/json_automaton.hpp"
#include "15_serving/structured/name_count.hpp"

namespace t2t {

using Json = nlohmann::ordered_json;  // properties keep their order
using Kind = JsonRule::Kind;

/// Where the reader is: the path in the schema, and how many objects and arrays are open in a text.
struct Place {
  std::string path = {};
  std::size_t depth = 0;

  Place in(const std::string& key) const { return {path + "/" + key, depth}; }
  Place opened() const { return {path, depth + 1}; }
};

[[noreturn]] static void refuse(const Place& place, const std::string& wanted,
                                const std::string& got) {
  throw std::invalid_argument(fmt::format("schema{}{}: wanted {}, got {}",
                                          place.path.empty() ? "" : " ", place.path, wanted, got));
}

/// A value in a message: its beginning, if it is long.
static std::string shown(const Json& value) {
  const std::string text = value.dump(-1, ' ', true);
  return text.size() > 60 ? text.substr(0, 60) + "…" : text;
}

/// What each keyword belongs to: a type, nothing else, or ("") any schema.
struct Keyword {
  const char *name, *type;
};
static constexpr Keyword keywords[] = {{"type", ""},
                                       {"properties", "object"},
                                       {"required", "object"},
                                       {"items", "array"},
                                       {"minItems", "array"},
                                       {"additionalProperties", "object"},
                                       {"maxItems", "array"},
                                       {"minLength", "string"},
                                       {"maxLength", "string"},
                                       {"enum", ""},
                                       {"const", ""},
                                       {"anyOf", ""}};
static constexpr const char* notes[] = {"title",    "description", "default",
                                        "examples", "$schema",     "$comment"};

static bool is_note(const std::string& key) { return std::ranges::count(notes, key) > 0; }

/// The names of a schema's types: none, one, or a list.
static std::vector<std::string> types_of(const Json& schema, const Place& place) {
  if (!schema.contains("type")) return {};
  const Json& type = schema["type"];
  std::vector<std::string> types;
  for (const Json& name : type.is_array() ? type : Json::array({type})) {
    const std::string text = name.is_string() ? name.get<std::string>() : "";
    if (text != "object" && text != "array" && text != "string" && text != "number" &&
        text != "integer" && text != "boolean" && text != "null")
      refuse(place.in("type"), "object, array, string, number, integer, boolean or null",
             shown(name));
    types.push_back(text);
  }
  if (types.empty()) refuse(place.in("type"), "at least 1 type", "0");
  return types;
}

/// Each keyword is known, and its type is there.
static void expect_keywords(const Json& schema, const std::vector<std::string>& types,
                            const Place& place) {
  for (const auto& [key, value] : schema.items()) {
    if (is_note(key)) continue;
    const auto known = std::ranges::find(keywords, key, &Keyword::name);
    if (known == std::end(keywords)) {
      std::string names;
      for (const Keyword& keyword : keywords)
        names += fmt::format("{}{}", names.empty() ? "" : ", ", keyword.name);
      refuse(place.in(key), "one of " + names, key);
    }
    const bool is_alone = key == "enum" || key == "const" || key == "anyOf";
    for (const auto& [other, unused] : schema.items())
      if (is_alone && other != key && !is_note(other) && (key == "anyOf" || other != "type"))
        refuse(place.in(key), "no other keyword beside it", other);
    if (*known->type && std::ranges::count(types, known->type) == 0)
      refuse(place.in(key), fmt::format("\"type\": \"{}\" beside it", known->type),
             schema.contains("type") ? shown(schema["type"]) : "no type");
  }
}

static bool has_type(const Json& value, const std::string& type) {
  return (type == "object" && value.is_object()) || (type == "array" && value.is_array()) ||
         (type == "string" && value.is_string()) || (type == "number" && value.is_number()) ||
         (type == "integer" && value.is_number_integer()) ||
         (type == "boolean" && value.is_boolean()) || (type == "null" && value.is_null());
}

/// The texts of enum and const.
static JsonRule rule_of_values(const Json& values, const std::vector<std::string>& types,
                               const Place& place) {
  JsonRule rule{Kind::text};
  if (!values.is_array() || values.empty()) refuse(place, "a list of values", shown(values));
  for (const Json& value : values) {
    if (!types.empty() &&
        std::ranges::none_of(types, [&](const std::string& type) { return has_type(value, type); }))
      refuse(place, "values of the schema's type", shown(value));
    rule.texts.push_back(value.dump());
  }
  return rule;
}

/// The bounds of a length.
static void read_bounds(const Json& schema, const char* least, const char* most, const Place& place,
                        JsonRule& rule) {
  for (const auto& [key, bound] : {std::pair(least, &rule.least), std::pair(most, &rule.most)}) {
    if (!schema.contains(key)) continue;
    const Json& value = schema[key];
    if (!value.is_number_integer() || value < 0 || value >= no_most)
      refuse(place.in(key), "a whole number from 0 on", shown(value));
    *bound = value.get<std::uint32_t>();
  }
  if (rule.least > rule.most)
    refuse(place.in(least), fmt::format("at most {}, which is {}", most, rule.most),
           std::to_string(rule.least));
}

/// Makes rules from the parts of a schema. What returns a number has added a rule of that index.
class SchemaReader {
 public:
  JsonGrammar grammar;

  std::uint32_t read(const Json& schema, const Place& place);

 private:
  std::uint32_t add(JsonRule rule);
  std::uint32_t choose(std::vector<std::uint32_t> rules, const Place& place);
  std::uint32_t read_type(const std::string& type, const Json& schema, const Place& place);
  std::uint32_t read_object(const Json& schema, const Place& place);
  std::uint32_t read_array(const Json& schema, const Place& place);
};

std::uint32_t SchemaReader::add(JsonRule rule) {
  grammar.rules.push_back(std::move(rule));
  return std::uint32_t(grammar.rules.size() - 1);
}

/// A choice of rules, of which the first byte takes one.
std::uint32_t SchemaReader::choose(std::vector<std::uint32_t> rules, const Place& place) {
  if (rules.size() == 1) return rules[0];
  for (int byte = 0; byte < 256; ++byte) {
    const auto begins = [&](std::uint32_t rule) {
      return may_begin(grammar, grammar.rules[rule], static_cast<unsigned char>(byte));
    };
    if (const auto count = std::ranges::count_if(rules, begins); count > 1)
      refuse(place, "alternatives that differ in their first byte",
             fmt::format("{} that may begin with {}", count, char(byte)));
  }
  return add({Kind::choice, std::move(rules)});
}

std::uint32_t SchemaReader::read_object(const Json& schema, const Place& place) {
  const Json properties = schema.value("properties", Json::object());
  if (!properties.is_object()) refuse(place.in("properties"), "an object", shown(properties));
  if (schema.contains("additionalProperties") && schema["additionalProperties"] != false)
    refuse(place.in("additionalProperties"), "false", shown(schema["additionalProperties"]));
  const Json required = schema.value("required", Json::array());
  if (!required.is_array()) refuse(place.in("required"), "a list of names", shown(required));
  for (const Json& name : required)
    if (!name.is_string() || !properties.contains(name.get<std::string>()))
      refuse(place.in("required"), "names of properties", shown(name));
  if (!schema.contains("properties") && !schema.contains("additionalProperties"))
    return add({Kind::map, {add_any_value(grammar)}});

  JsonRule rule{Kind::object};
  for (const auto& [name, value] : properties.items()) {
    rule.texts.push_back(Json(name).dump());
    rule.required.push_back(std::ranges::count(required, Json(name)) > 0);
    rule.rules.push_back(read(value, place.in("properties").in(name).opened()));
  }
  return add(std::move(rule));
}

std::uint32_t SchemaReader::read_array(const Json& schema, const Place& place) {
  JsonRule rule{Kind::array};
  read_bounds(schema, "minItems", "maxItems", place, rule);
  rule.rules = {schema.contains("items") ? read(schema["items"], place.in("items").opened())
                                         : add_any_value(grammar)};
  return add(std::move(rule));
}

std::uint32_t SchemaReader::read_type(const std::string& type, const Json& schema,
                                      const Place& place) {
  if ((type == "object" || type == "array") && place.depth == most_depth)
    refuse(place, fmt::format("at most {} objects and arrays in each other", most_depth), "more");
  if (type == "object") return read_object(schema, place);
  if (type == "array") return read_array(schema, place);
  if (type == "number") return add({Kind::number});
  if (type == "integer") return add({Kind::integer});
  if (type == "boolean") return add({Kind::text, {}, {"true", "false"}});
  if (type == "null") return add({Kind::text, {}, {"null"}});
  JsonRule rule{Kind::string};
  read_bounds(schema, "minLength", "maxLength", place, rule);
  return add(std::move(rule));
}

std::uint32_t SchemaReader::read(const Json& schema, const Place& place) {
  if (schema == true) return add_any_value(grammar);
  if (!schema.is_object()) refuse(place, "an object with keywords", shown(schema));
  const std::vector<std::string> types = types_of(schema, place);
  expect_keywords(schema, types, place);
  if (schema.contains("enum")) return add(rule_of_values(schema["enum"], types, place.in("enum")));
  if (schema.contains("const"))
    return add(rule_of_values(Json::array({schema["const"]}), types, place.in("const")));

  std::vector<std::uint32_t> rules;
  if (schema.contains("anyOf")) {
    const Json& alternatives = schema["anyOf"];
    if (!alternatives.is_array() || alternatives.empty())
      refuse(place.in("anyOf"), "a list of schemas", shown(alternatives));
    for (std::size_t i = 0; i < alternatives.size(); ++i)
      rules.push_back(read(alternatives[i], place.in("anyOf").in(std::to_string(i))));
    return choose(std::move(rules), place.in("anyOf"));
  }
  for (const std::string& type : types) rules.push_back(read_type(type, schema, place));
  return rules.empty() ? add_any_value(grammar) : choose(std::move(rules), place.in("type"));
}

/// The schema's values. What is read and written by recursion may not be nested at will.
static Json parsed(std::string_view schema) {
  static constexpr int most_nested = 100;
  NameCount names;
  const auto bounded = [&](int depth, Json::parse_event_t event, Json&) {
    if (depth > most_nested)
      refuse({}, fmt::format("at most {} braces and brackets in each other", most_nested), "more");
    if (!names.fits(depth, event))
      refuse({}, fmt::format("at most {} names in an object", most_names), "more");
    return true;
  };
  try {
    return Json::parse(schema, bounded);
  } catch (const Json::exception& error) {
    throw std::invalid_argument(fmt::format("schema: wanted JSON, got \"{}\"", error.what()));
  }
}

JsonGrammar schema_grammar(std::string_view schema) {
  SchemaReader reader;
  reader.grammar.rules.push_back({Kind::choice});  // rule 0 is the whole text's
  const std::uint32_t whole = reader.read(parsed(schema), {});
  reader.grammar.rules[0].rules = {whole};
  return std::move(reader.grammar);
}

}  // namespace t2t
