#include "16_server/structured/token_filter.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

#include "16_server/structured/schema.hpp"
#include "shapes.hpp"

namespace t2t {

/// Advances by a token. False if one of its bytes may not come.
static bool step_token(const JsonGrammar& grammar, JsonState& state, std::string_view token) {
  return std::ranges::all_of(token, [&](char byte) {
    return step_json(grammar, state, static_cast<unsigned char>(byte));
  });
}

std::vector<char> allowed_one_by_one(const TokenTrie& vocabulary, const JsonGrammar& grammar,
                                     const JsonState& state) {
  std::vector<char> allowed(vocabulary.tokens.size());  // [V]
  for (std::size_t id = 0; id < allowed.size(); ++id) {
    JsonState tried = state;
    allowed[id] =
        !vocabulary.tokens[id].empty() && step_token(grammar, tried, vocabulary.tokens[id]);
  }
  return allowed;
}

std::size_t allowed_tokens(const TokenTrie& vocabulary, const JsonGrammar& grammar,
                           const JsonState& state, std::vector<char>& allowed) {
  allowed.assign(vocabulary.tokens.size(), false);
  std::vector<JsonState> before(vocabulary.longest + 1);  // the state before each byte of the path
  before[0] = state;
  std::size_t tried = 0;
  for (std::size_t i = 0; i < vocabulary.nodes.size(); ++tried) {
    const TokenTrie::Node& node = vocabulary.nodes[i];
    JsonState& next = before[node.depth + 1] = before[node.depth];
    if (!step_json(grammar, next, node.byte)) {
      i = node.after;
      continue;
    }
    for (std::size_t t = node.first; t < node.first + node.count; ++t)
      allowed[std::size_t(vocabulary.ids[t])] = true;
    ++i;
  }
  return tried;
}

TokenFilter::TokenFilter(std::shared_ptr<const TokenTrie> vocabulary,
                         std::shared_ptr<const JsonGrammar> grammar, std::vector<int> stop_tokens)
    : vocabulary_(std::move(vocabulary)),
      grammar_(std::move(grammar)),
      stop_tokens_(std::move(stop_tokens)) {
  const std::size_t V = vocabulary_->tokens.size();
  expect(!stop_tokens_.empty(), "stop tokens", "at least 1", 0);
  for (const int id : stop_tokens_)
    expect(id >= 0 && std::size_t(id) < V, "a stop token", fmt::format("0 to {}", V - 1), id);
}

/// Advances by a token of the answer.
void TokenFilter::read(int id) {
  const std::vector<std::string>& tokens = vocabulary_->tokens;
  const bool is_text =
      id >= 0 && std::size_t(id) < tokens.size() && !tokens[std::size_t(id)].empty();
  JsonState next = state_;
  if (!is_text || !step_token(*grammar_, next, tokens[std::size_t(id)]))
    throw std::invalid_argument(fmt::format(
        "token {} of the answer: wanted one that may come there, got id {}", seen_, id));
  state_ = next;
  ++seen_;
}

/// Brings the list up to date. Inside a string the state is often the same as a token ago.
void TokenFilter::allow() {
  if (known_ == state_) return;
  known_.reset();
  allowed_tokens(*vocabulary_, *grammar_, state_, allowed_);
  for (const int id : stop_tokens_) allowed_[std::size_t(id)] = is_complete(*grammar_, state_);
  if (std::ranges::count(allowed_, true) == 0)
    throw std::runtime_error(fmt::format("token {} of the answer: none may come there", seen_));
  known_ = state_;
}

void TokenFilter::apply(std::span<const int> answer, Row logits) {
  const std::size_t V = vocabulary_->tokens.size();
  expect(logits.size() == V, "logits", std::to_string(V), logits.size());
  expect(answer.size() >= seen_, "tokens of the answer", fmt::format("at least {}", seen_),
         answer.size());
  while (seen_ < answer.size()) read(answer[seen_]);
  allow();
  for (std::size_t id = 0; id < V; ++id)
    if (!allowed_[id]) logits[id] = -std::numeric_limits<float>::infinity();
}

AnswerFilter json_filter(std::shared_ptr<const TokenTrie> vocabulary, std::vector<int> stop_tokens,
                         std::string_view schema) {
  auto grammar = std::make_shared<const JsonGrammar>(schema_grammar(schema));
  TokenFilter filter(std::move(vocabulary), std::move(grammar), std::move(stop_tokens));
  return [filter = std::move(filter)](std::span<const int> answer, Row logits) mutable {
    filter.apply(answer, logits);
  };
}

}  // namespace t2t
