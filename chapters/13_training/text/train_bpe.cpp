#include "13_training/text/train_bpe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <stdexcept>
#include <unordered_map>
#include <utility>

#include "10_pretrained/tokenizer/byte_alphabet.hpp"
#include "10_pretrained/tokenizer/unicode.hpp"
#include "shapes.hpp"
#include "utf8_start.hpp"

namespace t2t {

namespace {

using Pair = std::pair<int, int>;  // the ids of two tokens side by side

struct Word {
  std::vector<int> symbols;  // its bytes at first
  std::uint64_t count;       // how often the text has it
};

/// The tokens of single bytes, sorted: as strings they sort like the characters that they are.
std::vector<std::string> sorted_byte_tokens() {
  std::vector<std::string> tokens = byte_tokens();  // [256]
  std::ranges::sort(tokens);
  return tokens;
}

std::array<int, 256> ids_of_bytes() {
  std::array<int, 256> ids{};
  const std::vector<std::string> tokens = sorted_byte_tokens();
  for (std::size_t id = 0; id < tokens.size(); ++id)
    ids[std::uint8_t(from_byte_alphabet(tokens[id])->front())] = int(id);
  return ids;
}

/// The different words of a text, in the order in which they appear.
std::vector<Word> counted_words(std::string_view text, std::string_view pre_tokenizer) {
  const std::array<int, 256> ids = ids_of_bytes();
  std::vector<Word> words;
  std::unordered_map<std::string_view, std::size_t> index;
  const PreTokenizer pre(pre_tokenizer);
  std::string normal;
  if (pre.in_nfc()) text = normal = to_nfc(text);
  pre.for_each_word(text, [&](std::string_view word) {
    PairMerger::check_size(word.size());
    const auto [at, is_new] = index.try_emplace(word, words.size());
    if (is_new) {
      words.push_back({{}, 0});
      for (const char byte : word) words.back().symbols.push_back(ids[std::uint8_t(byte)]);
    }
    words[at->second].count += 1;
  });
  return words;
}

void expect_control(const std::vector<std::string>& control, std::vector<std::string> tokens) {
  for (const std::string& name : control) {
    const std::string shown = fmt::format("control token \"{}\"", printable(name));
    if (!is_utf8(name)) throw std::invalid_argument(shown + ": wanted UTF-8, got other bytes");
    if (name.empty() || name.size() > TokenFinder::most_bytes)
      throw std::invalid_argument(fmt::format("{}: wanted 1 to {} bytes, got {}", shown,
                                              TokenFinder::most_bytes, name.size()));
    if (std::ranges::find(tokens, name) != tokens.end())
      throw std::invalid_argument(shown + ": wanted a name of its own, got another token's");
    tokens.push_back(name);
  }
}

/// How many merges V asks for.
std::size_t merges_wanted(const BpeTraining& options) {
  const std::size_t least = 256 + options.control.size();
  expect(options.V >= least, "V, the vocabulary",
         fmt::format("at least {}, the bytes and the control tokens", least), options.V);
  expect(options.least_count >= 1, "least_count, of a pair", "at least 1", options.least_count);
  expect_control(options.control, sorted_byte_tokens());
  return options.V - least;
}

BpeTables tables_of(const std::vector<Pair>& merges, const BpeTraining& options) {
  BpeTables tables;
  tables.name = "the trained vocabulary";
  tables.pre_tokenizer = options.pre_tokenizer;
  tables.tokens = sorted_byte_tokens();
  // Two pairs never give one token: the bytes of a token, merged alone, always take the same steps.
  for (const Pair& pair : merges) {
    const std::string left = tables.tokens[pair.first], right = tables.tokens[pair.second];
    tables.merges.push_back(left + " " + right);
    tables.tokens.push_back(left + right);
  }
  const std::size_t most = tables.tokens.size() + options.control.size();
  expect(options.V <= most, "V, the vocabulary", fmt::format("at most {} for this text", most),
         options.V);

  expect_control(options.control, tables.tokens);
  if (!options.control.empty()) tables.eos = int(tables.tokens.size());
  tables.kinds.assign(tables.tokens.size(), TokenKind::normal);
  tables.kinds.resize(options.V, TokenKind::control);
  tables.tokens.insert(tables.tokens.end(), options.control.begin(), options.control.end());
  return tables;
}

/// All pairs of the words, how often they occur and where.
class CountedPairs {
 public:
  CountedPairs(const std::vector<Word>& words, std::size_t least_count);

  /// The pair with the highest count, of these the one with the smallest ids. Each pair is returned
  /// once; none when no count is at least least_count.
  std::optional<Pair> next();
  /// Replaces the pair by one symbol everywhere.
  void merge(Pair pair, int result);

 private:
  static constexpr int none = -1;  // no symbol begins here

  struct Places {
    std::uint64_t count = 0;
    std::vector<std::uint32_t> left;  // where it stood once; it may be gone
  };
  struct Hash {
    std::size_t operator()(Pair pair) const {
      const std::uint64_t bits = std::uint64_t(pair.first) << 32 | std::uint64_t(pair.second);
      return bits * 0x9e3779b97f4a7c15 >> 16;
    }
  };
  struct Waiting {
    std::uint64_t count;
    Pair pair;
  };
  static bool comes_later(const Waiting& a, const Waiting& b) {
    return a.count != b.count ? a.count < b.count : a.pair > b.pair;
  }

  bool is_pair(std::uint32_t left) const { return id_[left] != none && id_[next_[left]] != none; }
  Pair pair_at(std::uint32_t left) const { return {id_[left], id_[next_[left]]}; }
  void add(std::uint32_t left);
  void remove(std::uint32_t left);
  void wait(Pair pair);
  void wait_for_new_pairs();

  std::size_t least_count_;
  // All words, with a place that has no symbol before, between and after them. A symbol is at the
  // place of its first byte.
  std::vector<int> id_;
  std::vector<std::uint32_t> next_, before_;  // the places of its neighbours
  std::vector<std::uint64_t> count_;          // of the word that it is in
  std::unordered_map<Pair, Places, Hash> pairs_;
  std::vector<Pair> new_pairs_;   // that do not wait yet
  std::vector<Waiting> waiting_;  // a heap; a count may have become smaller since
};

CountedPairs::CountedPairs(const std::vector<Word>& words, std::size_t least_count)
    : least_count_(least_count), id_{none}, count_{0} {
  for (const Word& word : words) {
    id_.insert(id_.end(), word.symbols.begin(), word.symbols.end());
    id_.push_back(none);
    count_.resize(id_.size(), word.count);
  }
  constexpr std::size_t most = std::numeric_limits<std::uint32_t>::max();
  expect(id_.size() <= most, "text", fmt::format("at most {} bytes of different words", most),
         id_.size());
  for (std::uint32_t i = 0; i < id_.size(); ++i) {
    next_.push_back(i + 1);
    before_.push_back(i - 1);
  }
  for (std::uint32_t i = 0; i + 1 < id_.size(); ++i) add(i);
  wait_for_new_pairs();
}

void CountedPairs::add(std::uint32_t left) {
  if (!is_pair(left)) return;
  Places& places = pairs_[pair_at(left)];
  if (places.left.empty()) new_pairs_.push_back(pair_at(left));
  places.count += count_[left];
  places.left.push_back(left);
}

void CountedPairs::remove(std::uint32_t left) {
  if (is_pair(left)) pairs_[pair_at(left)].count -= count_[left];
}

void CountedPairs::wait(Pair pair) {
  const std::uint64_t count = pairs_[pair].count;
  if (count < least_count_) return;
  waiting_.push_back({count, pair});
  std::ranges::push_heap(waiting_, comes_later);
}

void CountedPairs::wait_for_new_pairs() {
  for (const Pair& pair : new_pairs_) wait(pair);
  new_pairs_.clear();
}

std::optional<Pair> CountedPairs::next() {
  // A pair gains places only in the merge that makes the newer of its two tokens. Later its count
  // can only fall. So no count in the heap is too low, and a pair whose count is too high waits
  // again.
  while (!waiting_.empty()) {
    std::ranges::pop_heap(waiting_, comes_later);
    const Waiting first = waiting_.back();
    waiting_.pop_back();
    if (pairs_[first.pair].count == first.count) return first.pair;
    wait(first.pair);
  }
  return std::nullopt;
}

void CountedPairs::merge(Pair pair, int result) {
  // From left to right: of aaa the first two become one.
  std::vector<std::uint32_t> places = std::move(pairs_[pair].left);
  std::ranges::sort(places);
  for (const std::uint32_t left : places) {
    if (pair_at(left) != pair) continue;  // one of the two has been merged with another
    const std::uint32_t right = next_[left], after = next_[right];
    remove(before_[left]);
    remove(right);
    id_[left] = result;
    id_[right] = none;
    next_[left] = after;
    before_[after] = left;
    add(before_[left]);
    add(left);
  }
  pairs_.erase(pair);
  wait_for_new_pairs();
}

}  // namespace

BpeTables train_bpe(std::string_view text, const BpeTraining& options,
                    const std::function<void(std::size_t merges)>& after_merge) {
  const std::size_t wanted = merges_wanted(options);
  CountedPairs pairs(counted_words(text, options.pre_tokenizer), options.least_count);
  std::vector<Pair> merges;
  while (merges.size() < wanted) {
    const std::optional<Pair> pair = pairs.next();
    if (!pair) break;
    pairs.merge(*pair, int(256 + merges.size()));
    merges.push_back(*pair);
    if (after_merge) after_merge(merges.size());
  }
  return tables_of(merges, options);
}

/// Replaces the pair by one symbol, from left to right.
static void merge_in_word(std::vector<int>& symbols, Pair pair, int result) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < symbols.size(); ++i) {
    const bool is_pair = i + 1 < symbols.size() && Pair(symbols[i], symbols[i + 1]) == pair;
    symbols[kept++] = is_pair ? result : symbols[i];
    if (is_pair) ++i;
  }
  symbols.resize(kept);
}

BpeTables train_bpe_by_recounting(std::string_view text, const BpeTraining& options) {
  const std::size_t wanted = merges_wanted(options);
  std::vector<Word> words = counted_words(text, options.pre_tokenizer);
  std::vector<Pair> merges;
  while (merges.size() < wanted) {
    std::map<Pair, std::uint64_t> counts;
    for (const Word& word : words)
      for (std::size_t i = 1; i < word.symbols.size(); ++i)
        counts[{word.symbols[i - 1], word.symbols[i]}] += word.count;

    // The map is in the order of ids, and max_element takes the first of equal counts.
    const auto best = std::ranges::max_element(counts, {}, [](const auto& c) { return c.second; });
    if (best == counts.end() || best->second < options.least_count) break;
    const int result = int(256 + merges.size());
    for (Word& word : words) merge_in_word(word.symbols, best->first, result);
    merges.push_back(best->first);
  }
  return tables_of(merges, options);
}

}  // namespace t2t
