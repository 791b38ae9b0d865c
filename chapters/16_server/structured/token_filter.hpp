// Which tokens may come next in an answer that must be JSON: the filter of a Request.
//
//   a token may come      if all of its bytes may come, one after the other
//   a stop token may come if the answer may end, and is never anything else
//
// The logits of all other tokens become −infinity, so the model chooses among those that may come.
// A filter belongs to one answer. It keeps the state after the answer so far, and reads only the
// tokens that are new since the last call.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "16_server/structured/json_automaton.hpp"
#include "16_server/structured/token_trie.hpp"
#include "tensor.hpp"

namespace t2t {

/// For each token whether it may come after the state's text: its bytes are tried one by one.
std::vector<char> allowed_one_by_one(const TokenTrie& vocabulary, const JsonGrammar& grammar,
                                     const JsonState& state);
/// The same by one walk through the trie. Returns how many bytes it tried.
std::size_t allowed_tokens(const TokenTrie& vocabulary, const JsonGrammar& grammar,
                           const JsonState& state, std::vector<char>& allowed);

class TokenFilter {
 public:
  /// Throws std::invalid_argument if there is no stop, or one that is not in the vocabulary.
  TokenFilter(std::shared_ptr<const TokenTrie> vocabulary,
              std::shared_ptr<const JsonGrammar> grammar, std::vector<int> stop_tokens);

  /// Forbids what may not come after this answer. Throws std::invalid_argument for another number
  /// of logits than tokens, an answer with fewer tokens than at the last call, and an answer with a
  /// token that may not come there; std::runtime_error if the vocabulary has no token that may come
  /// next.
  void apply(std::span<const int> answer, Row logits);

 private:
  void read(int id);
  void allow();

  std::shared_ptr<const TokenTrie> vocabulary_;
  std::shared_ptr<const JsonGrammar> grammar_;
  std::vector<int> stop_tokens_;
  JsonState state_;                 // after the tokens that have been read
  std::size_t seen_ = 0;            // how many these are
  std::optional<JsonState> known_;  // the state that `allowed_` belongs to
  std::vector<char> allowed_;       // [V]
};

/// The type of Request::filter: it sees the answer so far, and may change the next token's logits.
using AnswerFilter = std::function<void(std::span<const int> answer, Row logits)>;

/// A filter for Request::filter. The schema is one of schema.hpp; "{}" means any JSON. Copies that
/// have not been called serve other answers. Throws as schema_grammar and TokenFilter do.
AnswerFilter json_filter(std::shared_ptr<const TokenTrie> vocabulary, std::vector<int> stop_tokens,
                         std::string_view schema = "{}");

}  // namespace t2t
