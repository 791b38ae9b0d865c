#include "16_server/shows/show_structured.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "16_server/structured/schema.hpp"
#include "16_server/structured/token_filter.hpp"
#include "program/print.hpp"
#include "random.hpp"

namespace t2t {

/// Tokens of several bytes; the first one, without bytes, is the stop.
static std::vector<std::string> show_tokens() {
  return {"",      "\"",    "{\"",   "\":", "\":\"", "\",\"", "\"}", "}", ":",  "red",
          "green", "color", "sizes", "[",   "]",     "]}",    ",",   "1", "12", ".5"};
}
static const char* const show_schema =
    R"({"type": "object", "required": ["color"], "properties": {
        "color": {"enum": ["red", "green"]},
        "sizes": {"type": "array", "items": {"type": "number"}, "minItems": 1}}})";

static std::string name_of(const std::string& token) { return token.empty() ? "stop" : token; }

static void show_next(const std::shared_ptr<const TokenTrie>& vocabulary) {
  print_section("Which tokens may come next");
  const JsonGrammar grammar = schema_grammar(show_schema);
  Table table({"after", ">bytes tried", "tokens that may come"});
  for (const std::vector<int>& answer :
       std::vector<std::vector<int>>{{},
                                     {2},
                                     {2, 11},
                                     {2, 11, 4},
                                     {2, 11, 4, 9},
                                     {2, 11, 4, 9, 5, 12, 3},
                                     {2, 11, 4, 9, 5, 12, 3, 13},
                                     {2, 11, 4, 9, 5, 12, 3, 13, 17},
                                     {2, 11, 4, 9, 5, 12, 3, 13, 17, 15}}) {
    std::vector<float> logits(vocabulary->tokens.size(), 0);
    json_filter(vocabulary, {0}, show_schema)(answer, Row(logits.data(), logits.size()));
    std::string text, may;
    JsonState state;
    for (const int id : answer) text += vocabulary->tokens[std::size_t(id)];
    for (const char byte : text) step_json(grammar, state, static_cast<unsigned char>(byte));
    std::vector<char> allowed;
    const std::size_t tried = allowed_tokens(*vocabulary, grammar, state, allowed);
    for (std::size_t id = 0; id < logits.size(); ++id)
      if (logits[id] == 0) may += (may.empty() ? "" : "   ") + name_of(vocabulary->tokens[id]);
    table.add({text.empty() ? "(nothing)" : text, std::to_string(tried), may});
  }
  table.print();
}

/// An answer whose logits are random. It ends by the stop, or after 24 tokens.
static std::string answer_of(const TokenTrie& vocabulary, std::uint64_t seed,
                             const AnswerFilter& filter) {
  Random random(seed);
  std::vector<float> logits(vocabulary.tokens.size());
  std::vector<int> answer;
  std::string text;
  while (answer.size() < 24) {
    for (float& logit : logits) logit = float(random.next_uniform());
    if (filter) filter(answer, Row(logits.data(), logits.size()));
    answer.push_back(int(std::ranges::max_element(logits) - logits.begin()));
    if (answer.back() == 0) break;
    text += vocabulary.tokens[std::size_t(answer.back())];
  }
  return text;
}

void show_structured() {
  const auto vocabulary = std::make_shared<const TokenTrie>(show_tokens());
  show_next(vocabulary);
  fmt::print("\n");
  print_paragraph(fmt::format(
      "The vocabulary has 19 tokens and a stop. The schema requires an object with a color, red or "
      "green, and allows sizes, a list of at least one number. The tokens' trie has {} nodes, each "
      "for one byte.",
      vocabulary->nodes.size()));
  print_section("Answers from random logits");
  Table table({"filter", "answer"});
  for (const std::uint64_t seed : {1, 2, 3}) table.add({"none", answer_of(*vocabulary, seed, {})});
  for (const std::uint64_t seed : {1, 2, 3})
    table.add({"any JSON", answer_of(*vocabulary, seed, json_filter(vocabulary, {0}))});
  for (const std::uint64_t seed : {1, 2, 3})
    table.add(
        {"the schema", answer_of(*vocabulary, seed, json_filter(vocabulary, {0}, show_schema))});
  table.print();
}

}  // namespace t2t
