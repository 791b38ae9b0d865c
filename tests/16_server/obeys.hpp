// Whether a text is JSON and obeys a schema, by nlohmann's parser: it knows nothing of our
// automaton.
#pragma once

#include <string>

namespace t2t {

/// What is wrong with the text, or an empty string.
std::string wrong_in_text(const std::string& text, const std::string& schema);

/// Schemas of which random texts are drawn.
inline const char* const schemas[] = {
    "{}",
    R"({"type": "object", "properties": {"name": {"type": "string", "maxLength": 12},
        "age": {"type": "integer"}, "size": {"enum": ["s", "m", "ml", "l"]}},
        "required": ["name", "size"], "additionalProperties": false})",
    R"({"type": "array", "minItems": 2, "maxItems": 4, "items": {"anyOf": [
        {"type": "number"}, {"type": "boolean"}, {"type": "null"},
        {"type": "object", "properties": {"a": {"const": [1, "é"]}, "ab": {"type": ["integer", "null"]}},
         "required": ["ab"]},
        {"type": "array", "items": {"type": "string", "minLength": 2, "maxLength": 3}, "maxItems": 1}]}})",
    R"({"type": "object", "properties": {"n": {"enum": [1, 12, -1, 1.5]}, "\"ä": {},
        "b": {"type": "object", "properties": {"c": {"type": "boolean"}}, "required": ["c"]}},
        "required": ["b"]})",
    R"({"$defs": {"point": {"type": "array", "items": {"$ref": "#/$defs/size"}, "maxItems": 2},
                  "size": {"type": ["integer", "null"]}},
        "type": "object", "required": ["b", "a"], "properties": {
        "b": {"$ref": "#/$defs/point"}, "a": {"anyOf": [{"$ref": "#/$defs/point"}, {"const": "é"}]}}})",
};

}  // namespace t2t
