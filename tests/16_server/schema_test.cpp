// What must be true of grammars from a schema: texts drawn from them are JSON, and obey it.
#include "16_server/structured/schema.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "16_server/obeys.hpp"
#include "16_server/structured/json_automaton.hpp"
#include "random.hpp"
#include "support/refuses.hpp"

namespace t2t::schema_test {

using std::size_t;

/// Fewer where every index and address is watched, which takes ten times as long.
#ifdef __SANITIZE_ADDRESS__
static const size_t walks = 1'000;
#else
static const size_t walks = 10'000;
#endif

/// A byte that may come, drawn at random; nothing if none may. All bytes are tried in an order that
/// begins and goes on by chance, until one may come.
static bool draw_byte(const JsonGrammar& grammar, JsonState& state, std::string& text,
                      Random& random) {
  const auto begin = unsigned(random.next_uniform() * 256);
  const unsigned stride = 2 * unsigned(random.next_uniform() * 128) + 1;
  for (unsigned i = 0; i < 256; ++i) {
    const auto byte = static_cast<unsigned char>(begin + i * stride);
    JsonState tried = state;
    if (!step_json(grammar, tried, byte)) continue;
    state = tried;
    text += char(byte);
    return true;
  }
  return false;
}

/// A text that is drawn byte by byte until it may end.
static std::string random_text(const JsonGrammar& grammar, Random& random) {
  JsonState state;
  std::string text;
  while (!is_complete(grammar, state) && text.size() < 5000)
    if (!draw_byte(grammar, state, text, random)) return text + " and then nothing";
  return text;
}

TEST_CASE(
    "ten thousand texts, drawn byte by byte from what may come, parse and obey their schema") {
  Random random(7);
  std::string wrong;
  size_t bytes = 0;
  for (const char* schema : schemas) {
    const JsonGrammar grammar = schema_grammar(schema);
    for (size_t i = 0; i < walks / std::size(schemas) && wrong.empty(); ++i) {
      const std::string text = random_text(grammar, random);
      bytes += text.size();
      wrong = wrong_in_text(text, schema);
    }
  }
  CHECK(wrong == "");
  CHECK((bytes > 10 * walks || !wrong.empty()));
}

/// "whole", "may go on", or "byte 7" where the text is refused.
static std::string fate(const std::string& schema, const std::string& text) {
  const JsonGrammar grammar = schema_grammar(schema);
  JsonState state;
  for (size_t i = 0; i < text.size(); ++i)
    if (!step_json(grammar, state, static_cast<unsigned char>(text[i])))
      return "byte " + std::to_string(i);
  return is_complete(grammar, state) ? "whole" : "may go on";
}

TEST_CASE("by hand: properties come in the schema's order, and required ones must come") {
  const std::string schema = R"({"type": "object", "required": ["b"], "properties": {
      "a": {"type": "integer"}, "b": {"type": "boolean"}, "bc": {"type": "null"}}})";
  CHECK(fate(schema, R"({"a":1,"b":true,"bc":null})") == "whole");
  CHECK(fate(schema, R"( { "b" : false } )") == "byte 16");
  CHECK(fate(schema, R"({"b":true,"bc":null})") == "whole");
  CHECK(fate(schema, R"({})") == "byte 1");
  CHECK(fate(schema, R"({"a":1})") == "byte 6");
  CHECK(fate(schema, R"({"a":1,"bc)") == "byte 9");      // b is between them
  CHECK(fate(schema, R"({"b":true,"a)") == "byte 11");   // a is over
  CHECK(fate(schema, R"({"b":true,"b")") == "byte 12");  // bc, if anything
  CHECK(fate(schema, R"({"bc)") == "byte 3");
  CHECK(fate(schema, R"({"b":true,"bc":null,)") == "byte 19");
  CHECK(fate(schema, R"({"x)") == "byte 2");
  CHECK(fate(schema, R"({"a":1.)") == "byte 6");
  CHECK(fate(schema, R"([])") == "byte 0");
  CHECK(fate(R"({"type":"object","additionalProperties":false})", "{}") == "whole");
  CHECK(fate(R"({"type":"object","additionalProperties":false})", "{\"") == "byte 1");
  CHECK(fate(R"({"type":"object"})", R"({"x":[{}],"y":1})") == "whole");
}

TEST_CASE("by hand: items, lengths and alternatives") {
  const std::string list =
      R"({"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 2})";
  CHECK(fate(list, "[]") == "byte 1");
  CHECK(fate(list, "[1]") == "whole");
  CHECK(fate(list, "[1,2]") == "whole");
  CHECK(fate(list, "[1,2,") == "byte 4");
  CHECK(fate(list, "[\"") == "byte 1");
  CHECK(fate(R"({"type":"array","maxItems":0})", "[1") == "byte 1");
  CHECK(fate(R"({"type":"array","items":{"type":"array","minItems":2}})", "[[1],") == "byte 3");
  CHECK(fate(R"({"type":"array","items":{"type":"array","minItems":2}})", "[[1,2],[3,4]]") ==
        "whole");
  const std::string text = R"({"type": "string", "minLength": 2, "maxLength": 3})";
  CHECK(fate(text, "\"a\"") == "byte 2");
  CHECK(fate(text, "\"€é\"") == "whole");
  CHECK(fate(text, "\"\\ud83d\\ude00\\n\"") == "whole");  // two characters
  CHECK(fate(text, "\"€é\\n\"") == "whole");
  CHECK(fate(text, "\"abcd") == "byte 4");
  CHECK(fate(text, "\"abc\\") == "byte 4");
  const std::string any =
      R"({"anyOf": [{"type": ["integer", "null"]}, {"const": "x"}, {"enum": [true, [1, 2]]}]})";
  for (const char* value : {"-3", "null", "\"x\"", "true", "[1,2]"})
    CHECK(fate(any, value) == "whole");
  CHECK(fate(any, "\"y") == "byte 1");
  CHECK(fate(any, "false") == "byte 0");
  CHECK(fate(any, "[1, ") == "byte 3");  // written in one way
}

TEST_CASE("by hand: an enum is accepted whole, even if one value begins with another") {
  const std::string numbers = R"({"type": "array", "items": {"enum": [1, 123, -5]}})";
  CHECK(fate(numbers, "[1,123,-5]") == "whole");
  CHECK(fate(numbers, "[12]") == "byte 3");
  CHECK(fate(numbers, "[1234") == "byte 4");
  CHECK(fate(numbers, "[-]") == "byte 2");
  const std::string names = R"({"enum": ["s", "small"]})";
  CHECK(fate(names, "\"s\"") == "whole");
  CHECK(fate(names, "\"small\"") == "whole");
  CHECK(fate(names, "\"sm") == "may go on");
  CHECK(fate(names, "\"sm\"") == "byte 3");
  CHECK(fate(R"({"enum": [12, 1]})", "1") == "whole");
  CHECK(fate(R"({"enum": [12]})", "1") == "may go on");
}

TEST_CASE("by hand: properties that are not in the order of letters") {
  const std::string schema = R"({"type": "object", "required": ["why", "answer"], "properties": {
      "why": {"type": "string"}, "answer": {"type": "integer"}}})";
  CHECK(fate(schema, R"({"why":"","answer":4})") == "whole");
  CHECK(fate(schema, R"({"a)") == "byte 2");
}

static std::string repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

TEST_CASE("by hand: a reference is what it names") {
  // As pydantic writes a class with members of other classes.
  const std::string schema = R"({"$defs": {
      "Color": {"enum": ["red", "green"], "title": "Color", "type": "string"},
      "Place": {"properties": {"street": {"title": "Street", "type": "string"},
                               "color": {"$ref": "#/$defs/Color"}},
                "required": ["street"], "title": "Place", "type": "object"}},
    "properties": {"home": {"$ref": "#/$defs/Place", "description": "Where?"},
                   "work": {"anyOf": [{"$ref": "#/$defs/Place"}, {"type": "null"}], "default": null},
                   "colors": {"items": {"$ref": "#/$defs/Color"}, "type": "array"}},
    "required": ["home"], "title": "Person", "type": "object"})";
  CHECK(fate(schema, R"({"home":{"street":"a"}})") == "whole");
  CHECK(fate(schema, R"({"home":{"street":"a","color":"red"},"work":null,"colors":[]})") ==
        "whole");
  CHECK(fate(schema, R"({"home":{"street":"a"},"work":{"street":"b"},"colors":["red","green"]})") ==
        "whole");
  CHECK(fate(schema, R"({"home":{}})") == "byte 9");
  CHECK(fate(schema, R"({"home":{"street":"a","color":"b)") == "byte 31");
  CHECK(fate(schema, R"({"home":{"street":"a"},"colors":["x)") == "byte 34");
  CHECK(fate(R"({"$ref":"#/definitions/a~1b","definitions":{"a/b":{"type":"null"}}})", "null") ==
        "whole");
  CHECK(fate(R"({"type":"object","properties":{"a":{"type":"integer"},
                "b":{"$ref":"#/properties/a"}}})",
             R"({"b":1})") == "whole");
}

TEST_CASE("a reference counts the arrays that it is in, and what it names is read a bounded time") {
  const auto arrays = [](int count, const std::string& inner) {
    return repeated(R"({"type":"array","items":)", count) + inner + std::string(size_t(count), '}');
  };
  const auto with_defs = [&](int outside, int inside) {
    return R"({"anyOf":[)" + arrays(outside, R"({"$ref":"#/$defs/a"})") + R"(],"$defs":{"a":)" +
           arrays(inside, "{}") + "}}";
  };
  CHECK_NOTHROW(schema_grammar(with_defs(16, 16)));
  REFUSES(schema_grammar(with_defs(16, 17)),
          "schema /$defs/a" + repeated("/items", 16) +
              ": wanted at most 32 nested objects and arrays, got more");
  // Each of 25 parts refers twice to the next one, which would be 2²⁵ of the last one.
  std::string twice;
  for (int i = 0; i < 25; ++i)
    twice += '"' + std::to_string(i) + R"(":{"type":"object","properties":{"a":{"$ref":"#/$defs/)" +
             std::to_string(i + 1) + R"("},"b":{"$ref":"#/$defs/)" + std::to_string(i + 1) +
             "\"}}},";
  CHECK(schema_grammar(R"({"$ref":"#/$defs/0","$defs":{)" + twice + R"("25":{"type":"null"}}})")
            .rules.size() < 60);
  std::string chain;
  for (int i = 0; i < 200; ++i)
    chain += '"' + std::to_string(i) + R"(":{"$ref":"#/$defs/)" + std::to_string(i + 1) + "\"},";
  REFUSES(schema_grammar(R"({"$ref":"#/$defs/0","$defs":{)" + chain + R"("200":{"type":"null"}}})"),
          "schema /$defs/99: wanted at most 100 nested schemas, got more");
  std::string many;
  for (int i = 0; i < 12; ++i) {
    many += '"' + std::to_string(i) + R"(":{"type":"object","properties":{)";
    for (int j = 0; j < 999; ++j) many += '"' + std::to_string(j) + R"(":{"type":"null"},)";
    many += R"("x":{}}},)";
  }
  REFUSES(schema_grammar(R"({"type":"object","properties":{)" + many + R"("x":{}}})"),
          "schema: wanted at most 10000 parts, got more");
}

TEST_CASE("what the grammar can't have is refused, with its path") {
  const auto refused = [](const char* schema, const char* message) {
    CAPTURE(schema);
    REFUSES(schema_grammar(schema), message);
  };
  const std::string known =
      "one of type, properties, required, items, minItems, additionalProperties, "
      "maxItems, minLength, maxLength, enum, const, anyOf, $ref";
  refused(R"({"type":"object","properties":{"age":{"type":"integer","minimum":0}}})",
          ("schema /properties/age/minimum: wanted " + known + ", got minimum").c_str());
  refused(R"({"$ref":"#/a"})",
          "schema /$ref: wanted the path of a part of this schema, got \"#/a\"");
  refused(R"({"$ref":"#a"})", "schema /$ref: wanted the path of a part of this schema, got \"#a\"");
  refused(R"({"$ref":"http://a/b"})",
          "schema /$ref: wanted a path in this schema that begins with #, got \"http://a/b\"");
  refused(R"({"$ref":7})", "schema /$ref: wanted a path in this schema that begins with #, got 7");
  refused(R"({"$ref":"#/$defs/a","type":"null","$defs":{"a":{}}})",
          "schema /$ref: wanted no other keyword beside it, got type");
  refused(R"({"$ref":"#/$defs/a","$defs":{"a":{"type":"string","pattern":"b"}}})",
          ("schema /$defs/a/pattern: wanted " + known + ", got pattern").c_str());
  refused(R"({"$ref":"#/$defs/node","$defs":{"node":{"type":"object","properties":{
             "next":{"anyOf":[{"$ref":"#/$defs/node"},{"type":"null"}]}}}}})",
          "schema /$defs/node/properties/next/anyOf/0/$ref: wanted a schema that is not recursive, "
          "got \"#/$defs/node\"");
  refused(R"({"type":"array","items":{"$ref":"#"}})",
          "schema /items/$ref: wanted a schema that is not recursive, got \"#\"");
  refused(
      R"({"type":"str"})",
      "schema /type: wanted object, array, string, number, integer, boolean or null, got \"str\"");
  refused(R"({"type":[]})", "schema /type: wanted at least 1 type, got 0");
  refused("[]", "schema: wanted an object with keywords, got []");
  refused("false", "schema: wanted an object with keywords, got false");
  refused(R"({"minItems":1})",
          "schema /minItems: wanted \"type\": \"array\" beside it, got no type");
  refused(R"({"type":"string","items":{}})",
          "schema /items: wanted \"type\": \"array\" beside it, got \"string\"");
  refused(R"({"type":"array","items":{"type":"string","minLength":3,"maxLength":2}})",
          "schema /items/minLength: wanted at most maxLength, which is 2, got 3");
  refused(R"({"type":"array","maxItems":-1})",
          "schema /maxItems: wanted an integer from 0 on, got -1");
  refused(R"({"type":"object","properties":{},"additionalProperties":true})",
          "schema /additionalProperties: wanted false, got true");
  refused(R"({"type":"object","required":["a"]})",
          "schema /required: wanted names of properties, got \"a\"");
  refused(R"({"enum":[]})", "schema /enum: wanted a list of values, got []");
  refused(R"({"type":"string","enum":["a",1]})",
          "schema /enum: wanted values of the schema's type, got 1");
  refused(R"({"enum":["a"],"minLength":1})",
          "schema /enum: wanted no other keyword beside it, got minLength");
  refused(R"({"type":"null","anyOf":[{}]})",
          "schema /anyOf: wanted no other keyword beside it, got type");
  refused(R"({"anyOf":[{"type":"string"},{"const":"x"}]})",
          "schema /anyOf: wanted alternatives that differ in their first byte, got 2 that may "
          "begin with \"");
  refused(R"({"type":["number","integer"]})",
          "schema /type: wanted alternatives that differ in their first byte, got 2 that may begin "
          "with -");
  std::string deep = "{}";
  for (int i = 0; i < 33; ++i) deep = R"({"type":"array","items":)" + deep + "}";
  refused(deep.c_str(), ("schema " +
                         [] {
                           std::string path;
                           for (int i = 0; i < 32; ++i) path += "/items";
                           return path;
                         }() +
                         ": wanted at most 32 nested objects and arrays, got more")
                            .c_str());
  refused((std::string(200, '[') + std::string(200, ']')).c_str(),
          "schema: wanted at most 100 nested braces and brackets, got more");
  refused(("{\"enum\":[0" + repeated(",0", 1000) + "]}").c_str(),
          "schema /enum: wanted at most 1000 values, got 1001");
  std::string names = R"({"type":"object","properties":{)";
  for (int i = 0; i <= 1000; ++i) names += '"' + std::to_string(i) + "\":{},";
  refused((names + "\"a\":{}}}").c_str(),
          "schema: wanted at most 1000 names in an object, got more");
  CHECK_THROWS_AS(schema_grammar("{"), std::invalid_argument);
  CHECK_NOTHROW(schema_grammar(R"({"title":"t","description":"d","type":"null","default":null})"));
}

}  // namespace t2t::schema_test
