#include "13_training/text/ngram.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "01_embedding/embedding.hpp"
#include "shapes.hpp"

namespace t2t {

using Tokens = std::span<const int>;

static bool before(Tokens a, Tokens b) { return std::ranges::lexicographical_compare(a, b); }

/// The entry with these tokens in a list in their order, or null. tokens_of(entry) are an entry's.
template <class Entry, class TokensOf>
static const Entry* find(const std::vector<Entry>& list, Tokens wanted, TokensOf tokens_of) {
  const auto is_before = [&](const Entry& entry, Tokens tokens) {
    return before(tokens_of(entry), tokens);
  };
  const auto found = std::lower_bound(list.begin(), list.end(), wanted, is_before);
  return found != list.end() && std::ranges::equal(tokens_of(*found), wanted) ? &*found : nullptr;
}

/// The different sequences of n tokens at these places, each with its count.
std::vector<NgramModel::Sequence> NgramModel::counted(std::vector<std::uint32_t> places,
                                                      std::size_t n) const {
  std::ranges::sort(
      places, [&](std::uint32_t a, std::uint32_t b) { return before(tokens(a, n), tokens(b, n)); });
  std::vector<Sequence> sequences;
  for (const std::uint32_t at : places)
    if (!sequences.empty() && std::ranges::equal(tokens(sequences.back().at, n), tokens(at, n)))
      ++sequences.back().count;
    else
      sequences.push_back({at, 1});
  return sequences;
}

/// The discounts, by the header's formulas, from how many sequences have a count of 1, 2, 3 and 4.
static std::array<double, 4> discounts(const std::array<double, 5>& with_count) {
  constexpr std::array<double, 4> usual = {0, 0.5, 1, 1.5};
  const auto& n = with_count;
  for (std::size_t c = 1; c <= 4; ++c)
    if (n[c] == 0) return usual;

  std::array<double, 4> discount = {};
  const double y = n[1] / (n[1] + 2 * n[2]);
  for (std::size_t c = 1; c <= 3; ++c) {
    discount[c] = double(c) - double(c + 1) * y * n[c + 1] / n[c];
    if (discount[c] <= 0) return usual;
  }
  return discount;
}

NgramModel::Level NgramModel::level(std::vector<Sequence> sequences, std::size_t n) const {
  Level level;
  std::array<double, 5> with_count = {};
  for (const Sequence& sequence : sequences)
    if (sequence.count <= 4) ++with_count[sequence.count];
  level.discount = discounts(with_count);
  for (const Sequence& sequence : sequences) {
    const Tokens context = tokens(sequence.at, n - 1);
    if (level.contexts.empty() ||
        !std::ranges::equal(tokens(level.contexts.back().at, n - 1), context))
      level.contexts.push_back({sequence.at, 0, 0});
    level.contexts.back().sum += sequence.count;
    level.contexts.back().share += level.discount[std::min(sequence.count, 3u)];
  }
  for (Context& context : level.contexts) context.share /= context.sum;
  level.sequences = std::move(sequences);
  return level;
}

NgramModel::NgramModel(Tokens ids, std::size_t V, std::size_t order)
    : ids_(ids.begin(), ids.end()), V_(V) {
  expect(V >= 1, "V, the vocabulary", "at least 1", V);
  expect(order >= 1, "order, the tokens of a sequence", "at least 1", order);
  expect(!ids.empty(), "ids, the text's tokens", "at least 1", 0);
  expect(ids.size() < UINT32_MAX, "ids, the text's tokens", "fewer than 4294967295", ids.size());
  expect_ids(ids, V);
  order = std::min(order, ids.size());
  levels_.resize(order);
  std::vector<std::uint32_t> places(ids.size() - order + 1);
  std::iota(places.begin(), places.end(), 0u);
  for (std::size_t n = order; n >= 1; --n) {
    std::vector<Sequence> sequences = counted(std::move(places), n);
    // Each of these, without its first token, is one token that was seen before the rest.
    places.clear();
    for (const Sequence& sequence : sequences) places.push_back(sequence.at + 1);
    // What the text begins with has no token before it. It still is before its own rest.
    if (!find(sequences, tokens(0, n), [&](const Sequence& s) { return tokens(s.at, n); }))
      places.push_back(1);
    levels_[n - 1] = level(std::move(sequences), n);
  }
}

double NgramModel::probability(Tokens context, int next) const {
  expect(next >= 0 && std::size_t(next) < V_, "next", "an id of the vocabulary", next);
  double p = 1 / double(V_);
  std::vector<int> wanted;
  for (std::size_t n = 1; n <= levels_.size() && n - 1 <= context.size(); ++n) {
    const Level& level = levels_[n - 1];
    const Tokens last = context.last(n - 1);
    const Context* found =
        find(level.contexts, last, [&](const Context& c) { return tokens(c.at, n - 1); });
    if (!found) break;  // longer contexts end in this one, so they were not seen either
    wanted.assign(last.begin(), last.end());
    wanted.push_back(next);
    const Sequence* sequence =
        find(level.sequences, wanted, [&](const Sequence& s) { return tokens(s.at, n); });
    const double count = sequence ? sequence->count : 0;
    const double kept = count - level.discount[std::size_t(std::min(count, 3.0))];
    p = kept / found->sum + found->share * p;
  }
  return p;
}

double ngram_loss(const NgramModel& model, Tokens ids) {
  expect(ids.size() >= 2, "ids, a text to measure", "at least 2", ids.size());
  double sum = 0;
  for (std::size_t t = 1; t < ids.size(); ++t)
    sum -= std::log(model.probability(ids.first(t), ids[t]));
  return sum / double(ids.size() - 1);
}

}  // namespace t2t
