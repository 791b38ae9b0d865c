// Byte-pair encoding of one word: of all neighbours that a merge is known for, the pair whose merge
// was learned first (the lowest rank) becomes one symbol; again, until no pair is left.
//
//   l o w e r  →  lo w e r  →  low e r  →  low er        with merges  l·o, lo·w, e·r
//
// Neither the longest token nor the fewest tokens are sought: only the order of the merges counts.
// Looking for the best pair by going over the word again after each merge takes time quadratic in
// the word, and a word may be a megabyte of one letter. Here each pair is looked up when it comes
// to be and waits in a heap; one that is gone when its turn comes is passed over.
// Sennrich et al. 2016, "Neural Machine Translation of Rare Words with Subword Units".
#pragma once

#include <cstdint>
#include <random>
#include <unordered_map>
#include <vector>

namespace t2t {

struct Merge {
  std::uint32_t rank;  // its place in the list of merges
  int result;          // the id of the two texts as one
};

/// Merges by the ids of the pair.
class MergeTable {
 public:
  /// False, with nothing changed, when the pair has a merge already.
  bool add(int left, int right, Merge merge);
  /// None when the pair does not merge.
  const Merge* find(int left, int right) const;
  std::size_t size() const { return table_.size(); }

 private:
  /// Another one in each table, so that no file can be made whose pairs all fall together.
  struct Hash {
    Hash() : seed(std::random_device()()) {}
    std::size_t operator()(std::uint64_t pair) const;
    std::uint64_t seed;
  };
  std::unordered_map<std::uint64_t, Merge, Hash> table_;
};

/// Merges word after word, with the storage of the one before.
class PairMerger {
 public:
  explicit PairMerger(const MergeTable& merges) : merges_(merges) {}

  /// Throws std::runtime_error for a word of more than 2^22 bytes, which no text has: it would take
  /// seconds, and memory 20 times its size.
  static void check_size(std::size_t bytes);

  /// symbols, one for each byte of a word, become its tokens. Throws as check_size does.
  void run(std::vector<int>& symbols);

  /// Look-ups in the table, over all words: at most 5 a symbol.
  std::size_t lookups() const { return lookups_; }

 private:
  const Merge* find(const std::vector<int>& symbols, std::uint32_t left);
  void wait(const std::vector<int>& symbols, std::uint32_t left);
  void join(std::vector<int>& symbols, std::uint32_t left, int result);

  const MergeTable& merges_;
  // A symbol keeps the place of its first byte. At that place stands where it ends (its last byte),
  // and at its last byte where it begins: all that a linked list needs.
  std::vector<std::uint32_t> other_end_;
  std::vector<std::uint64_t> waiting_;  // a heap: rank · 2^32 + place, the least on top
  std::size_t lookups_ = 0;
};

}  // namespace t2t
