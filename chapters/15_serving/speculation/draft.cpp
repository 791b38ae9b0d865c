#include "15_serving/speculation/draft.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <memory>

#include "09_language_model/fast/forward.hpp"
#include "09_language_model/sampling.hpp"
#include "shapes.hpp"

namespace t2t {

/// What followed the last n tokens at their last earlier occurrence, up to k tokens.
static std::span<const int> followers(std::span<const int> tokens, std::size_t n, std::size_t k) {
  if (n >= tokens.size()) return {};
  const std::span<const int> end = tokens.last(n);
  for (std::size_t at = tokens.size() - n; at-- > 0;)
    if (std::ranges::equal(tokens.subspan(at, n), end))
      return tokens.subspan(at + n, std::min(k, tokens.size() - at - n));
  return {};
}

Drafter lookup_drafter(std::size_t longest, std::size_t shortest) {
  expect(shortest >= 1 && shortest <= longest, "shortest, the tokens to look for",
         fmt::format("1 to {}", longest), shortest);
  return [longest, shortest](std::span<const int> tokens, std::size_t k) -> std::vector<int> {
    for (std::size_t n = longest; n >= shortest; --n)
      if (const auto found = followers(tokens, n, k); !found.empty())
        return {found.begin(), found.end()};
    return {};
  };
}

/// A model that drafts, and the tokens that it has read.
struct DraftModel {
  const Model& model;
  ModelState state;
  std::vector<int> read = {};
  Tensor<1> logits;  // [V], after the last of them

  DraftModel(const Model& m, std::size_t S)
      : model(m), state(m.config(), S), logits(empty(m.config().V)) {}

  /// Reads what is new in a sequence. At least the last token is read again, since the logits after
  /// it are needed.
  void follow(std::span<const int> tokens) {
    const auto [differs, unused] = std::ranges::mismatch(read, tokens);
    const std::size_t common = std::min(std::size_t(differs - read.begin()), tokens.size() - 1);
    truncate(state, common);
    read.resize(common);
    more(tokens.subspan(common));
  }
  void more(std::span<const int> tokens) {
    forward(model, state, tokens, row(logits));
    read.insert(read.end(), tokens.begin(), tokens.end());
  }
};

Drafter model_drafter(const Model& model, std::size_t S) {
  const auto draft_model = std::make_shared<DraftModel>(model, S);
  return [draft_model](std::span<const int> tokens, std::size_t k) {
    std::vector<int> drafts;
    if (tokens.empty() || tokens.size() > draft_model->state.S) return drafts;
    k = std::min(k, draft_model->state.S - tokens.size() + 1);
    if (k == 0) return drafts;
    draft_model->follow(tokens);
    while (true) {
      drafts.push_back(greedy(row(draft_model->logits)));
      if (drafts.size() == k) return drafts;
      draft_model->more({&drafts.back(), 1});
    }
  };
}

}  // namespace t2t
