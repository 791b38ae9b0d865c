// Which tokens may come next in JSON, by a trie and one by one.
#include "timing/bench.hpp"

#include <fmt/core.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "16_server/structured/token_filter.hpp"
#include "random.hpp"

namespace t2t {

/// A vocabulary made as BPE makes it: each token after the 256 bytes joins two earlier ones, drawn
/// at random, most of them letters.
static std::vector<std::string> bench_vocabulary() {
  Random random(4);
  std::vector<std::string> tokens;
  for (int byte = 0; byte < 256; ++byte) tokens.push_back(std::string(1, char(byte)));
  const auto drawn = [&]() -> const std::string& {
    const double u = random.next_uniform();
    if (u < 0.4) return tokens['a' + std::size_t(random.next_uniform() * 26)];
    const double v = random.next_uniform();
    return tokens[std::size_t(v * v * v * double(tokens.size()))];  // early ones more often
  };
  while (tokens.size() < 49'151) {
    const std::string token = drawn() + drawn();
    if (token.size() <= 16) tokens.push_back(token);
  }
  tokens.push_back("");  // the stop
  return tokens;
}

/// Which tokens may come after a beginning of any JSON, and a filter's call after one more token.
static void bench_tokens(Bench& bench, const TokenTrie& vocabulary, const char* where,
                         std::string_view beginning) {
  const JsonGrammar grammar = any_json();
  JsonState state;
  for (const char byte : beginning) step_json(grammar, state, static_cast<unsigned char>(byte));
  std::vector<char> allowed, want;
  const auto walk = [&] { allowed_tokens(vocabulary, grammar, state, allowed); };
  const auto one_by_one = [&] { want = allowed_one_by_one(vocabulary, grammar, state); };
  const std::string what = fmt::format("which of 49,152 tokens may come, {}", where);
  walk(), one_by_one();
  bench.expect_right(what, allowed == want);
  bench.against(what, walk, "each token tried", one_by_one);
}

static void bench_filter(Bench& bench, const std::shared_ptr<const TokenTrie>& vocabulary) {
  const std::size_t V = vocabulary->tokens.size();
  std::vector<float> logits(V);
  std::vector<int> answer = {'"'};
  const auto filter = json_filter(vocabulary, {int(V) - 1});
  const JsonGrammar grammar = any_json();
  std::vector<char> allowed;
  JsonState state;
  step_json(grammar, state, '"');
  bench.against(
      "a filter's call, 49,152 tokens, in a string",
      [&] {
        answer.push_back('a');
        filter(answer, Row(logits.data(), V));
      },
      "a walk through the trie", [&] { allowed_tokens(*vocabulary, grammar, state, allowed); });
}

void bench(Bench& bench) {
  const auto vocabulary = std::make_shared<const TokenTrie>(bench_vocabulary());
  bench_tokens(bench, *vocabulary, "where a value begins", "[1,");
  bench_tokens(bench, *vocabulary, "in a string", "[\"a");
  bench_filter(bench, vocabulary);
}

}  // namespace t2t
