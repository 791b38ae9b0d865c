#include "16_server/structured/schema.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <utility>

#include "16_server/structured/json_automaton.hpp"
#include "16_server/structured/json_bounds.hpp"

namespace t2t {

using Json = nlohmann::ordered_json;  // properties keep their order
using Kind = JsonRule::Kind;

static constexpr std::size_t most_nested = 100, most_rules = 10'000;

/// Where the reader is: the path in the schema, how many objects and arrays are open in a text, and
/// how many schemas are nested, by their braces or by reference.
struct Location {
  std::string path = {};
  std::size_t depth = 0, nested = 0;

  Location in(const std::string& key) const { return {path + "/" + key, depth, nested}; }
  Location opened() const { return {path, depth + 1, nested}; }
  Location inside() const { return {path, depth, nested + 1}; }
  Location at(const std::string& other) const { return {other, depth, nested}; }
};

[[noreturn]] static void refuse(const Location& at, const std::string& wanted,
                                const std::string& got) {
  throw std::invalid_argument(fmt::format("schema{}{}: wanted {}, got {}",
                                          at.path.empty() ? "" : " ", at.path, wanted, got));
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
                                       {"anyOf", ""},
                                       {"$ref", ""}};
/// What says nothing of the value. Definitions are read where something refers to them.
static constexpr const char* notes[] = {"title",   "description", "default", "examples",
                                        "$schema", "$comment",    "$defs",   "definitions"};

static bool is_note(const std::string& key) { return std::ranges::count(notes, key) > 0; }

/// The names of a schema's types: none, one, or a list.
static std::vector<std::string> types_of(const Json& schema, const Location& at) {
  if (!schema.contains("type")) return {};
  const Json& type = schema["type"];
  std::vector<std::string> types;
  for (const Json& name : type.is_array() ? type : Json::array({type})) {
    const std::string text = name.is_string() ? name.get<std::string>() : "";
    if (text != "object" && text != "array" && text != "string" && text != "number" &&
        text != "integer" && text != "boolean" && text != "null")
      refuse(at.in("type"), "object, array, string, number, integer, boolean or null", shown(name));
    types.push_back(text);
  }
  if (types.empty()) refuse(at.in("type"), "at least 1 type", "0");
  return types;
}

/// Each keyword is known, and its type is there.
static void expect_keywords(const Json& schema, const std::vector<std::string>& types,
                            const Location& at) {
  for (const auto& [key, value] : schema.items()) {
    if (is_note(key)) continue;
    const auto known = std::ranges::find(keywords, key, &Keyword::name);
    if (known == std::end(keywords)) {
      std::string names;
      for (const Keyword& keyword : keywords)
        names += fmt::format("{}{}", names.empty() ? "" : ", ", keyword.name);
      refuse(at.in(key), "one of " + names, key);
    }
    const bool has_values = key == "enum" || key == "const";
    const bool is_alone = has_values || key == "anyOf" || key == "$ref";
    for (const auto& [other, unused] : schema.items())
      if (is_alone && other != key && !is_note(other) && !(has_values && other == "type"))
        refuse(at.in(key), "no other keyword beside it", other);
    if (*known->type && std::ranges::count(types, known->type) == 0)
      refuse(at.in(key), fmt::format("\"type\": \"{}\" beside it", known->type),
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
                               const Location& at) {
  JsonRule rule{Kind::text};
  if (!values.is_array() || values.empty()) refuse(at, "a list of values", shown(values));
  if (values.size() > most_names)
    refuse(at, fmt::format("at most {} values", most_names), std::to_string(values.size()));
  for (const Json& value : values) {
    if (!types.empty() &&
        std::ranges::none_of(types, [&](const std::string& type) { return has_type(value, type); }))
      refuse(at, "values of the schema's type", shown(value));
    rule.texts.push_back(value.dump());
  }
  return rule;
}

/// The bounds of a length.
static void read_bounds(const Json& schema, const char* least, const char* most, const Location& at,
                        JsonRule& rule) {
  for (const auto& [key, bound] : {std::pair(least, &rule.least), std::pair(most, &rule.most)}) {
    if (!schema.contains(key)) continue;
    const Json& value = schema[key];
    if (!value.is_number_integer() || value < 0 || value >= no_most)
      refuse(at.in(key), "an integer from 0 on", shown(value));
    *bound = value.get<std::uint32_t>();
  }
  if (rule.least > rule.most)
    refuse(at.in(least), fmt::format("at most {}, which is {}", most, rule.most),
           std::to_string(rule.least));
}

/// Makes rules from the parts of a schema. Functions that return a number have added the rule with
/// that index.
class SchemaReader {
 public:
  JsonGrammar grammar;

  /// The whole schema must outlive it.
  explicit SchemaReader(const Json& whole) : whole_(whole) {}
  std::uint32_t read(const Json& schema, const Location& outside);

 private:
  std::uint32_t add(JsonRule rule);
  std::uint32_t any_value();
  std::uint32_t read_reference(const Json& schema, const Location& at);
  std::uint32_t read_alternatives(const Json& alternatives, const Location& at);
  std::uint32_t choose(std::vector<std::uint32_t> rules, const Location& at);
  std::uint32_t read_type(const std::string& type, const Json& schema, const Location& at);
  std::uint32_t read_object(const Json& schema, const Location& at);
  std::uint32_t read_array(const Json& schema, const Location& at);

  const Json& whole_;
  std::optional<std::uint32_t> any_value_;  // its rule
  std::vector<std::string> references_;     // that are being read
  /// Rules of parts that are referred to. At another depth a part may be refused.
  std::map<std::pair<std::string, std::size_t>, std::uint32_t> known_;
};

std::uint32_t SchemaReader::add(JsonRule rule) {
  if (grammar.rules.size() == most_rules)
    refuse({}, fmt::format("at most {} parts", most_rules), "more");
  grammar.rules.push_back(std::move(rule));
  return std::uint32_t(grammar.rules.size() - 1);
}

std::uint32_t SchemaReader::any_value() {
  if (!any_value_) any_value_ = add_any_value(grammar);
  return *any_value_;
}

/// A choice of rules, one of which the first byte selects.
std::uint32_t SchemaReader::choose(std::vector<std::uint32_t> rules, const Location& at) {
  if (rules.size() == 1) return rules[0];
  for (int byte = 0; byte < 256; ++byte) {
    const auto begins = [&](std::uint32_t rule) {
      return may_begin(grammar, grammar.rules[rule], static_cast<unsigned char>(byte));
    };
    if (const auto count = std::ranges::count_if(rules, begins); count > 1)
      refuse(at, "alternatives that differ in their first byte",
             fmt::format("{} that may begin with {}", count, char(byte)));
  }
  return add({Kind::choice, std::move(rules)});
}

std::uint32_t SchemaReader::read_object(const Json& schema, const Location& at) {
  const Json properties = schema.value("properties", Json::object());
  if (!properties.is_object()) refuse(at.in("properties"), "an object", shown(properties));
  if (schema.contains("additionalProperties") && schema["additionalProperties"] != false)
    refuse(at.in("additionalProperties"), "false", shown(schema["additionalProperties"]));
  const Json required = schema.value("required", Json::array());
  if (!required.is_array() || required.size() > most_names)
    refuse(at.in("required"), fmt::format("a list of at most {} names", most_names),
           shown(required));
  for (const Json& name : required)
    if (!name.is_string() || !properties.contains(name.get<std::string>()))
      refuse(at.in("required"), "names of properties", shown(name));
  if (!schema.contains("properties") && !schema.contains("additionalProperties"))
    return add({Kind::map, {any_value()}});

  JsonRule rule{Kind::object};
  for (const auto& [name, value] : properties.items()) {
    rule.texts.push_back(Json(name).dump());
    rule.required.push_back(std::ranges::count(required, Json(name)) > 0);
    rule.rules.push_back(read(value, at.in("properties").in(name).opened()));
  }
  return add(std::move(rule));
}

std::uint32_t SchemaReader::read_array(const Json& schema, const Location& at) {
  JsonRule rule{Kind::array};
  read_bounds(schema, "minItems", "maxItems", at, rule);
  rule.rules = {schema.contains("items") ? read(schema["items"], at.in("items").opened())
                                         : any_value()};
  return add(std::move(rule));
}

std::uint32_t SchemaReader::read_type(const std::string& type, const Json& schema,
                                      const Location& at) {
  if ((type == "object" || type == "array") && at.depth == most_depth)
    refuse(at, fmt::format("at most {} nested objects and arrays", most_depth), "more");
  if (type == "object") return read_object(schema, at);
  if (type == "array") return read_array(schema, at);
  if (type == "number") return add({Kind::number});
  if (type == "integer") return add({Kind::integer});
  if (type == "boolean") return add({Kind::text, {}, {"true", "false"}});
  if (type == "null") return add({Kind::text, {}, {"null"}});
  JsonRule rule{Kind::string};
  read_bounds(schema, "minLength", "maxLength", at, rule);
  return add(std::move(rule));
}

/// What a reference such as "#/$defs/address" names, as if it stood here.
std::uint32_t SchemaReader::read_reference(const Json& schema, const Location& at) {
  const Json& reference = schema["$ref"];
  const std::string text = reference.is_string() ? reference.get<std::string>() : "";
  const auto refuse_it = [&](const char* wanted) {
    refuse(at.in("$ref"), wanted, shown(reference));
  };
  if (!text.starts_with('#')) refuse_it("a path in this schema that begins with #");
  if (std::ranges::count(references_, text) > 0) refuse_it("a schema that is not recursive");
  if (const auto known = known_.find({text, at.depth}); known != known_.end()) return known->second;
  const std::string path = text.substr(1);
  references_.push_back(text);
  const Json* named = nullptr;
  try {
    named = &whole_.at(Json::json_pointer(path));
  } catch (const Json::exception&) {
    refuse_it("the path of a part of this schema");
  }
  const std::uint32_t rule = read(*named, at.at(path));
  references_.pop_back();
  return known_[{text, at.depth}] = rule;
}

std::uint32_t SchemaReader::read_alternatives(const Json& alternatives, const Location& at) {
  if (!alternatives.is_array() || alternatives.empty())
    refuse(at, "a list of schemas", shown(alternatives));
  std::vector<std::uint32_t> rules;
  for (std::size_t i = 0; i < alternatives.size(); ++i)
    rules.push_back(read(alternatives[i], at.in(std::to_string(i))));
  return choose(std::move(rules), at);
}

std::uint32_t SchemaReader::read(const Json& schema, const Location& outside) {
  const Location at = outside.inside();
  if (at.nested > most_nested)
    refuse(at, fmt::format("at most {} nested schemas", most_nested), "more");
  if (schema == true) return any_value();
  if (!schema.is_object()) refuse(at, "an object with keywords", shown(schema));
  const std::vector<std::string> types = types_of(schema, at);
  expect_keywords(schema, types, at);
  if (schema.contains("$ref")) return read_reference(schema, at);
  if (schema.contains("enum")) return add(rule_of_values(schema["enum"], types, at.in("enum")));
  if (schema.contains("const"))
    return add(rule_of_values(Json::array({schema["const"]}), types, at.in("const")));
  if (schema.contains("anyOf")) return read_alternatives(schema["anyOf"], at.in("anyOf"));

  std::vector<std::uint32_t> rules;
  for (const std::string& type : types) rules.push_back(read_type(type, schema, at));
  return rules.empty() ? any_value() : choose(std::move(rules), at.in("type"));
}

/// The schema's values. JSON that is read and written by recursion must not be nested without
/// limit.
static Json parsed(std::string_view schema) {
  const JsonBounds bounds = json_bounds(schema);
  if (bounds.levels > most_nested)
    refuse({}, fmt::format("at most {} nested braces and brackets", most_nested), "more");
  if (bounds.names > most_names)
    refuse({}, fmt::format("at most {} names in an object", most_names), "more");
  try {
    return Json::parse(schema);
  } catch (const Json::exception& error) {
    throw std::invalid_argument(fmt::format("schema: wanted JSON, got \"{}\"", error.what()));
  }
}

JsonGrammar schema_grammar(std::string_view schema) {
  const Json values = parsed(schema);
  SchemaReader reader(values);
  reader.grammar.rules.push_back({Kind::choice});  // rule 0 is the whole text's
  const std::uint32_t whole = reader.read(values, {});
  reader.grammar.rules[0].rules = {whole};
  return std::move(reader.grammar);
}

}  // namespace t2t
