// What must be true of the filter that makes answers JSON.
#include "16_server/structured/token_filter.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "10_pretrained/tokenizer/byte_alphabet.hpp"
#include "15_serving/engine/engine.hpp"
#include "15_serving/shows/toy_runner.hpp"
#include "16_server/obeys.hpp"
#include "16_server/structured/schema.hpp"
#include "random.hpp"
#include "support/lists.hpp"
#include "support/refuses.hpp"

namespace t2t::token_filter_test {

using std::size_t;

/// Tokens that cut characters in two, join punctuation, and go from one value into the next; the
/// first two have no bytes, and token 0 is the stop.
static std::vector<std::string> small_vocabulary() {
  return {"",         "",
          "{",        "}",
          "[",        "]",
          "\"",       ":",
          ",",        "\":",
          "\",\"",    "\"}",
          "\"]",      "{\"",
          "}}",       "]]",
          "},{",      "\",",
          "[]",       "{}",
          "a",        "b",
          "name",     "\"name\":",
          "size",     "s\"}",
          "m",        "l",
          "\"ml\"}",  "\"b",
          "c",        "true",
          "fal",      "se",
          "t",        "r",
          "u",        "e",
          "f",        "null",
          "n",        "1",
          "12",       "-",
          ".5",       "e",
          "0",        "1]",
          " ",        "\n",
          "\n  ",     "\\",
          "\\u00",    "D8",
          "\xC3",     "\xA9",
          "\xF0\x9F", "\x98",
          "\x80\"",   "\xA9\xC3",
          "é",        "\\uD83D\\uDE00",
          "\"a\":",   "\"ab\":",
          "\"\\\"",   "\xC3\xA4",
          "\xA4",     "\":{\"",
          "g",        "[1,\"",
          "1,",       "\"age\":",
          "i",        "z",
          "s",        "D",
          "C",        "8",
          "2"};
}
static std::shared_ptr<const TokenTrie> trie_of(std::vector<std::string> tokens) {
  return std::make_shared<const TokenTrie>(std::move(tokens));
}
static const std::vector<float> zeros(1000, 0.0f);

/// The ids whose logits the filter leaves after this answer.
static std::vector<int> left_after(const std::vector<int>& answer,
                                   const std::vector<std::string>& tokens,
                                   const std::vector<int>& stop_tokens = {0},
                                   const char* schema = "{}") {
  std::vector<float> logits(tokens.size(), 1.0f);
  json_filter(trie_of(tokens), stop_tokens, schema)(answer, Row(logits.data(), logits.size()));
  std::vector<int> left;
  for (size_t id = 0; id < logits.size(); ++id)
    if (logits[id] == 1)
      left.push_back(int(id));
    else
      CHECK(logits[id] == -std::numeric_limits<float>::infinity());
  return left;
}

TEST_CASE("by hand: a token may come if all of its bytes may; a stop if the text may end") {
  const std::vector<std::string> tokens = {"",   "",  "[", "]",    "1",      "1]",     "1]]",
                                           "[1", "a", "e", "\xC3", "\"\xC3", "\xA9\"", "\xA9\xC3"};
  CHECK(left_after({}, tokens) == Ids{2, 4, 7, 11});
  CHECK(left_after({2}, tokens) == Ids{2, 3, 4, 5, 7, 11});
  CHECK(left_after({2, 2}, tokens) == Ids{2, 3, 4, 5, 6, 7, 11});
  CHECK(left_after({7}, tokens) == Ids{3, 4, 5, 9});
  CHECK(left_after({7, 3}, tokens) == Ids{0});
  CHECK(left_after({4}, tokens) == Ids{0, 4, 9});
  CHECK(left_after({11}, tokens) == Ids{12, 13});
  CHECK(left_after({11, 12}, tokens) == Ids{0});
  CHECK(left_after({7, 3}, tokens, {1, 0}) == Ids{0, 1});
  // A stop is nothing but a stop, even if it has bytes; of control tokens no other may come.
  CHECK(left_after({}, tokens, {2}) == Ids{4, 7, 11});
  CHECK(left_after({4}, tokens, {2}) == Ids{2, 4, 9});
}

TEST_CASE("by hand: a vocabulary may have more tokens than 16 bits can count") {
  std::vector<std::string> tokens(70'000, "no");
  tokens[0] = "", tokens[69'998] = "[", tokens[69'999] = "]";
  CHECK(left_after({}, tokens) == Ids{69'998});
  CHECK(left_after({69'998}, tokens) == Ids{69'998, 69'999});
  CHECK(left_after({69'998, 69'999}, tokens) == Ids{0});
}

TEST_CASE("the trie has each token once, and tokens that begin alike share its nodes") {
  const TokenTrie trie({"ab", "", "a", "abc", "b", "ab"});
  REQUIRE(trie.nodes.size() == 4);  // a, ab, abc, b
  CHECK(trie.longest == 3);
  const auto node = [&](size_t i) {
    return std::vector<int>{trie.nodes[i].byte, trie.nodes[i].depth, int(trie.nodes[i].after),
                            int(trie.nodes[i].count)};
  };
  CHECK(node(0) == Ids{'a', 0, 3, 1});
  CHECK(node(1) == Ids{'b', 1, 3, 2});
  CHECK(node(2) == Ids{'c', 2, 3, 1});
  CHECK(node(3) == Ids{'b', 0, 4, 1});
  CHECK(trie.ids == Ids{2, 0, 5, 3, 4});
  CHECK(TokenTrie({}).nodes.empty());
  REFUSES(TokenTrie({std::string(65536, 'a')}),
          "bytes of a token: wanted at most 65535, got 65536");
}

/// Fewer where every index and address is watched, which takes ten times as long.
#ifdef __SANITIZE_ADDRESS__
static const size_t answers = 1'000;
#else
static const size_t answers = 10'000;
#endif

/// An answer from random logits, as ids; it ends by token 0 or after 2,000 tokens.
static std::vector<int> random_answer(const TokenTrie& trie, AnswerFilter filter, Random& random) {
  std::vector<float> logits(trie.tokens.size());
  std::vector<int> answer;
  while (answer.size() < 2000) {
    for (float& logit : logits) logit = float(random.next_uniform());
    filter(answer, Row(logits.data(), logits.size()));
    const int id = int(std::ranges::max_element(logits) - logits.begin());
    if (id == 0) break;
    answer.push_back(id);
  }
  return answer;
}
static std::string text_of(const TokenTrie& trie, const std::vector<int>& ids) {
  std::string text;
  for (const int id : ids) text += trie.tokens[size_t(id)];
  return text;
}

/// What is wrong with an answer that is drawn with a copy of this filter.
static std::string wrong_in_answer(const TokenTrie& trie, const AnswerFilter& filter,
                                   const char* schema, Random& random, size_t& tokens) {
  try {
    const std::vector<int> answer = random_answer(trie, filter, random);
    tokens += answer.size();
    return wrong_in_text(text_of(trie, answer), schema);
  } catch (const std::exception& error) {
    return error.what();
  }
}

TEST_CASE("ten thousand answers from random logits parse and obey their schema") {
  const auto trie = trie_of(small_vocabulary());
  Random random(11);
  std::string wrong;
  size_t tokens = 0;
  for (const char* schema : schemas) {
    const AnswerFilter filter = json_filter(trie, {0}, schema);
    for (size_t i = 0; i < answers / std::size(schemas) && wrong.empty(); ++i)
      wrong = wrong_in_answer(*trie, filter, schema, random, tokens);
  }
  CHECK(wrong == "");
  CHECK((tokens > 5 * answers || !wrong.empty()));
}

TEST_CASE(
    "a walk through the trie allows the tokens that trying each one allows, with fewer bytes") {
  const TokenTrie trie(small_vocabulary());
  Random random(3);
  for (const char* schema : schemas) {
    const JsonGrammar grammar = schema_grammar(schema);
    for (size_t i = 0; i < answers / 100; ++i) {
      JsonState state;
      for (size_t t = 0; t < 30; ++t) {
        const std::vector<char> want = allowed_one_by_one(trie, grammar, state);
        std::vector<char> got;
        CHECK(allowed_tokens(trie, grammar, state, got) <= trie.nodes.size());
        CHECK((got == want));
        std::vector<int> may;
        for (size_t id = 0; id < want.size(); ++id)
          if (want[id]) may.push_back(int(id));
        if (may.empty()) break;
        for (const char byte :
             trie.tokens[size_t(may[size_t(random.next_uniform() * double(may.size()))])])
          CHECK(step_json(grammar, state, static_cast<unsigned char>(byte)));
      }
    }
  }
}

TEST_CASE("a filter reads only what is new in the answer, and says what is wrong with it") {
  const auto trie = trie_of({"", "[", "1", "]", "x"});
  std::vector<float> logits(5, 0);
  const auto call = [&](const auto& filter, const std::vector<int>& answer) {
    filter(answer, Row(logits.data(), logits.size()));
  };
  const auto filter = json_filter(trie, {0});
  call(filter, {1});
  call(filter, {1, 2, 2});  // two tokens more
  REFUSES(call(filter, {1, 2}), "tokens of the answer: wanted at least 3, got 2");
  REFUSES(call(filter, {1, 2, 2, 1}),
          "token 3 of the answer: wanted one that may come there, got id 1");
  REFUSES(call(json_filter(trie, {0}), {4}),
          "token 0 of the answer: wanted one that may come there, got id 4");
  REFUSES(call(json_filter(trie, {0}), {0}),
          "token 0 of the answer: wanted one that may come there, got id 0");
  REFUSES(call(json_filter(trie, {0}), {5}),
          "token 0 of the answer: wanted one that may come there, got id 5");
  REFUSES_AS(call(json_filter(trie_of({"", "{", "a", "b", "c"}), {0}), {1}),
             "token 1 of the answer: none may come there", std::runtime_error);
  std::vector<float> few(4, 0);
  REFUSES(json_filter(trie, {0})(std::vector<int>{}, Row(few.data(), 4)),
          "logits: wanted 5, got 4");
  REFUSES(json_filter(trie, {}), "stop tokens: wanted at least 1, got 0");
  REFUSES(json_filter(trie, {5}), "a stop token: wanted 0 to 4, got 5");
  REFUSES(json_filter(trie, {-1}), "a stop token: wanted 0 to 4, got -1");
  REFUSES(json_filter(trie, {0}, "1"), "schema: wanted an object with keywords, got 1");
}

TEST_CASE("text tokens have bytes, control tokens have none") {
  BpeTables tables;
  tables.name = "small";
  tables.pre_tokenizer = "smollm";
  tables.tokens = byte_tokens();
  tables.tokens.push_back("<|im_end|>");
  tables.tokens.push_back("<tag>");
  tables.kinds.assign(256, TokenKind::normal);
  tables.kinds.push_back(TokenKind::control);
  tables.kinds.push_back(TokenKind::added);
  const std::vector<std::string> tokens = text_tokens(Bpe(tables));
  CHECK(tokens.size() == 258);
  CHECK(tokens[0xC3] == "\xC3");
  CHECK(tokens[256] == "");
  CHECK(tokens[257] == "<tag>");
}

TEST_CASE("texts that the engine stops and computes again answer in JSON, and as they do alone") {
  const auto trie = trie_of(small_vocabulary());
  const EngineOptions scarce{.pages = 12, .page_size = 4, .sequences = 4, .budget = 16};
  const auto request = [&](size_t i) {
    Request text{.prompt = {int(i), 1, 2}, .max_new_tokens = 40, .stop_tokens = {0}};
    text.sampling.temperature = 20;
    text.seed = i;
    text.filter = json_filter(trie, {0}, schemas[i % std::size(schemas)]);
    return text;
  };
  Engine engine(toy_runner(scarce, trie->tokens.size()));
  for (size_t i = 0; i < 24; ++i) engine.submit(request(i));
  std::vector<std::vector<int>> said(24);
  size_t stops = 0, whole = 0;
  for (size_t step = 0; !engine.idle() && step < 2000; ++step) {
    for (const Event& event : engine.step()) {
      CHECK(event.error == "");
      if (event.token) said[event.id].push_back(*event.token);
      if (event.ending != Ending::stop_token) continue;
      ++whole;
      CHECK(wrong_in_text(text_of(*trie, said[event.id]), schemas[event.id % std::size(schemas)]) ==
            "");
    }
    stops += engine.plan().preempted.size();
  }
  CHECK(engine.idle());
  CHECK(stops > 0);
  CHECK(whole > 8);
  for (size_t i = 0; i < 24; ++i) {
    Engine one(toy_runner({.pages = 20, .page_size = 4, .sequences = 1, .budget = 16},
                          trie->tokens.size()));
    one.submit(request(i));
    std::vector<int> alone;
    for (size_t step = 0; !one.idle() && step < 200; ++step)
      for (const Event& event : one.step())
        if (event.token) alone.push_back(*event.token);
    CHECK(said[i] == alone);
  }
}

}  // namespace t2t::token_filter_test
