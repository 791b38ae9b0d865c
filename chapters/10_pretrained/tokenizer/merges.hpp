// Byte-pair encoding of one word. Of all pairs of neighbours that have a merge, the pair whose
// merge was learned first (the lowest rank) becomes one symbol. This repeats until no pair has a
// merge.
//
//   l o w e r  →  lo w e r  →  low e r  →  low er        with merges  l·o, lo·w, e·r
//
// The result need not have the longest or the fewest tokens: only the order of the merges counts.
// Searching the whole word after each merge would take quadratic time, and a word may be a megabyte
// of one letter. Here each pair is looked up once when it appears and waits in a heap; a pair that
// is gone when its turn comes is skipped.
// Sennrich et al. 2016, "Neural Machine Translation of Rare Words with Subword Units".
#pragma once

#include <cstdint>
#include <random>
#include <unordered_map>
#include <vector>

namespace t2t {

struct Merge {
  std::uint32_t rank;  // its index in the list of merges
  int result;          // the id of the merged token
};

/// Finds a merge by the ids of its pair.
class MergeTable {
 public:
  /// Returns false and changes nothing when the pair already has a merge.
  bool add(int left, int right, Merge merge);
  /// nullptr when the pair has no merge.
  const Merge* find(int left, int right) const;
  std::size_t size() const { return table_.size(); }

 private:
  /// Seeded differently in each table, so that no file can make all pairs collide.
  struct Hash {
    Hash() : seed(std::random_device()()) {}
    std::size_t operator()(std::uint64_t pair) const;
    std::uint64_t seed;
  };
  std::unordered_map<std::uint64_t, Merge, Hash> table_;
};

/// Merges word after word and reuses its storage.
class PairMerger {
 public:
  explicit PairMerger(const MergeTable& merges) : merges_(merges) {}

  /// Throws std::runtime_error for a word of more than 2^22 bytes, which would take seconds and 20
  /// times its size in memory.
  static void check_size(std::size_t bytes);

  /// Replaces symbols, one for each byte of a word, by the tokens of the word. Throws as check_size
  /// does.
  void run(std::vector<int>& symbols);

  /// How many look-ups all words took: at most 5 for each symbol.
  std::size_t lookups() const { return lookups_; }

 private:
  const Merge* find(const std::vector<int>& symbols, std::uint32_t left);
  void wait(const std::vector<int>& symbols, std::uint32_t left);
  void join(std::vector<int>& symbols, std::uint32_t left, int result);

  const MergeTable& merges_;
  // A symbol is stored at the index of its first byte. There, other_end_ holds the index of its
  // last byte, and at its last byte the index of its first: a linked list.
  std::vector<std::uint32_t> other_end_;
  std::vector<std::uint64_t> waiting_;  // a heap of rank · 2^32 + index, the least on top
  std::size_t lookups_ = 0;
};

}  // namespace t2t
