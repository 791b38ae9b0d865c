// What must be true of the automaton for JSON, byte by byte.
#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

#include "16_server/structured/json_automaton.hpp"
#include "16_server/structured/json_number.hpp"
#include "16_server/structured/json_string.hpp"
#include "support/lists.hpp"

namespace t2t::json_test {

using std::size_t;

/// How far a text comes, as "whole", "may go on" or the number of the byte that is refused.
static std::string fate(std::string_view text, const JsonGrammar& grammar = any_json()) {
  JsonState state;
  for (size_t i = 0; i < text.size(); ++i)
    if (!step_json(grammar, state, static_cast<unsigned char>(text[i])))
      return "byte " + std::to_string(i);
  return is_complete(grammar, state) ? "whole" : "may go on";
}

/// All bytes that may come after a text.
static std::string next_bytes(std::string_view text, const JsonGrammar& grammar = any_json()) {
  JsonState state;
  for (const char byte : text) step_json(grammar, state, static_cast<unsigned char>(byte));
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) {
    JsonState tried = state;
    if (step_json(grammar, tried, static_cast<unsigned char>(byte))) bytes += char(byte);
  }
  return bytes;
}

TEST_CASE("by hand: which bytes may come next") {
  CHECK(next_bytes("") == "\t\n\r \"-0123456789[fnt{");
  CHECK(next_bytes("{") == "\t\n\r \"}");
  CHECK(next_bytes("{\"a\"") == "\t\n\r :");
  CHECK(next_bytes("{\"a\":1") == "\t\n\r ,.0123456789Ee}");
  CHECK(next_bytes("{\"a\":1,") == "\t\n\r \"");
  CHECK(next_bytes("[") == "\t\n\r \"-0123456789[]fnt{");
  CHECK(next_bytes("[1,") == "\t\n\r \"-0123456789[fnt{");
  CHECK(next_bytes("[[]") == "\t\n\r ,]");
  CHECK(next_bytes("t") == "r");
  CHECK(next_bytes("\"\\") == "\"/\\bfnrtu");
  CHECK(next_bytes("-") == "0123456789");
  CHECK(next_bytes("0") == ".Ee");
  CHECK(next_bytes("{}") == "");
}

TEST_CASE("every prefix of a text may come, and the text may end at its end and nowhere before") {
  for (const std::string text :
       {"{}", "[]", "\"\"", "true", "false", "null", "{\"a\": [1, {\"b\": null}], \"c\": \"x\"}",
        " [ \"\\u00e9\\uD83D\\uDE00\\n\", \"é€😀\" ,\t-0.5e-3\r\n]", "[[[[]],[]]]",
        "{\"\":{\"\":{}}}", "[true,false,null]"}) {
    CAPTURE(text);
    for (size_t size = 0; size < text.size(); ++size) {
      CAPTURE(size);
      CHECK(fate(text.substr(0, size)) == "may go on");
    }
    CHECK(fate(text) == "whole");
  }
}

TEST_CASE("numbers: the grammar of RFC 8259, and bounds") {
  for (const char* number : {"0", "-0", "10", "1.5", "-1.50", "0.0", "1e5", "1E+5", "0e-07",
                             "1.0e05", "12345678901234567890", "0.12345678901234567890"}) {
    CAPTURE(number);
    CHECK(fate(number) == "whole");
    CHECK(fate(std::string("[") + number + "]") == "whole");
    CHECK(fate(std::string("{\"a\":") + number + " }") == "whole");
  }
  for (const char* number : {"-", "1.", "1e", "1e+", "1E-", "0.5e"}) {
    CAPTURE(number);
    CHECK(fate(number) == "may go on");
    CHECK(fate(std::string("[") + number + "]") ==
          "byte " + std::to_string(1 + std::string(number).size()));
  }
  CHECK(fate("01") == "byte 1");
  CHECK(fate("-01") == "byte 2");
  CHECK(fate("+1") == "byte 0");
  CHECK(fate(".5") == "byte 0");
  CHECK(fate("1.e5") == "byte 2");
  CHECK(fate("1.5.5") == "byte 3");
  CHECK(fate("1e5.5") == "byte 3");
  CHECK(fate("--1") == "byte 1");
  CHECK(fate("123456789012345678901") == "byte 20");
  CHECK(fate("0.123456789012345678901") == "byte 22");
  CHECK(fate("1e123") == "byte 4");
  CHECK(fate("NaN") == "byte 0");
}

TEST_CASE("strings: characters, escapes and pairs of surrogates") {
  for (const char* text :
       {"\"\x7f\"", "\"\\/\\\\\\\"\\b\\f\\n\\r\\t\"", "\"\\u0000\"", "\"\\uD7FF\\uE000\\uffff\"",
        "\"\\ud800\\udc00\"", "\"\\uDBFF\\uDFFF\\uDBff\\udFFF\"", "\"\xC2\x80\xDF\xBF\"",
        "\"\xE0\xA0\x80\xED\x9F\xBF\xEE\x80\x80\xEF\xBF\xBF\"",
        "\"\xF0\x90\x80\x80\xF4\x8F\xBF\xBF\""}) {
    CAPTURE(text);
    CHECK(fate(text) == "whole");
  }
  const std::vector<std::pair<std::string, size_t>> wrong = {
      {"\"\n\"", 1},            // a control character
      {"\"\x1f", 1},            //
      {"\"\\x41\"", 2},         // an escape that is none
      {"\"\\'\"", 2},           //
      {"\"\\u00g0\"", 5},       // a digit that is none
      {"\"\\u12\"", 5},         // too few
      {"\"\\uDC00\"", 4},       // a second half alone
      {"\"\\uD800\"", 7},       // a first half alone
      {"\"\\uD800x", 7},        //
      {"\"\\uD800\\n", 8},      //
      {"\"\\uD800\\u0041", 9},  // a first half, and no second one
      {"\"\\uD800\\uD800", 10},
      {"\"\x80", 1},              // a byte that begins no character
      {"\"\xC1\x81", 1},          // a shorter form exists
      {"\"\xE0\x9F\xBF", 2},      //
      {"\"\xF0\x8F\xBF\xBF", 2},  //
      {"\"\xED\xA0\x80", 2},      // half of a surrogate pair
      {"\"\xF4\x90\x80\x80", 2},  // above U+10FFFF
      {"\"\xF5", 1},              //
      {"\"\xC3\"", 2},            // a character that is cut off
      {"\"\xE2\x82 ", 3},         //
      {"\"\xF0\x9F\x98"
       "a",
       4},                 //
      {"\"\xE2(\xA1", 2},  //
  };
  for (const auto& [given, at] : wrong) {
    const std::string& text = given;
    CAPTURE(text);
    CHECK(fate(text) == "byte " + std::to_string(at));
  }
}

TEST_CASE("what is between values") {
  for (const auto& [given, at] :
       std::vector<std::pair<std::string, size_t>>{{"[1 2]", 3},      {"[1,]", 3},
                                                   {"[,1]", 1},       {"{\"a\" 1}", 5},
                                                   {"{\"a\":}", 5},   {"{a:1}", 1},
                                                   {"{\"a\":1,}", 7}, {"{1:1}", 1},
                                                   {"[1}", 2},        {"{]", 1},
                                                   {"{\"a\":1]", 6},  {"{\"a\":1:", 6},
                                                   {"]", 0},          {"{}{}", 2},
                                                   {"[]]", 2},        {"true ", 4},
                                                   {"1 ", 1},         {"tru]", 3},
                                                   {"[nul]", 4},      {"TRUE", 0},
                                                   {"[true1", 5},     {"\xEF\xBB\xBF{}", 0},
                                                   {"// x", 0},       {"'a'", 0},
                                                   {"[1\v]", 2}}) {
    const std::string& text = given;
    CAPTURE(text);
    CHECK(fate(text) == "byte " + std::to_string(at));
  }
}

TEST_CASE("at most 20 blanks come one after the other, and 32 objects and arrays are open") {
  const std::string blanks = " \n\t\r \n\t\r \n\t\r \n\t\r \n\t\r";
  CHECK(fate(blanks + "[" + blanks + "1" + blanks + "," + blanks + "2" + blanks + "]") == "whole");
  CHECK(fate(blanks + " ") == "byte 20");
  CHECK(fate("[" + blanks + " ") == "byte 21");
  CHECK(fate("{\"a\"" + blanks + ":" + blanks + "1" + blanks + ",\"b\" :1}") == "whole");
  CHECK(fate("[\"" + std::string(100, ' ') + "\"]") == "whole");
  CHECK(fate(std::string(32, '[') + "1" + std::string(32, ']')) == "whole");
  CHECK(fate(std::string(33, '[')) == "byte 32");
  std::string objects;
  for (int i = 0; i < 16; ++i) objects += "[{\"a\":";
  CHECK(fate(objects + "0") == "may go on");
  CHECK(fate(objects + "{") == "byte " + std::to_string(objects.size()));
  CHECK(fate(objects + "[") == "byte " + std::to_string(objects.size()));
  std::string closed = "[";
  for (int i = 0; i < 100; ++i) closed += "[[]],{},";  // what is closed does not count
  CHECK(fate(closed + "0]") == "whole");
}

TEST_CASE("a state is equal to another if the same may come after both") {
  const JsonGrammar any = any_json();
  const auto after = [&](std::string_view text) {
    JsonState state;
    for (const char byte : text) step_json(any, state, static_cast<unsigned char>(byte));
    return state;
  };
  CHECK(after("[\"a") == after("[\"bcd"));
  CHECK(after("[[],[") == after("[["));
  CHECK(after("[1") == after("[[[2]],3"));
  CHECK_FALSE(after("[\"a") == after("{\"a"));
  CHECK_FALSE(after("[[1") == after("[1"));
  CHECK_FALSE(after("[{\"a\":1") == after("[[1"));
  CHECK_FALSE(after("[ ") == after("[  "));
  CHECK_FALSE(after("\"\\u0") == after("\"\\uD"));
  CHECK_FALSE(after("\"\xC3") == after("\"\xE2"));
}

}  // namespace t2t::json_test
