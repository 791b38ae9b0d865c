// Which sums of parts a rank holds while parts come one after the other, in the order of fixed
// pairs (pairs.hpp). A binary counter: two sums of 2^k parts that are one pair of the tree become
// a sum of 2^(k+1) parts at once, so that a rank holds few of them at a time.
//
//   parts come    0      1      2          3        the sums held, for 4 parts or more
//   held          [0]    [0,1]  [0,1] [2]  [0…3]
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <vector>

#include "19_ranks/collectives/range.hpp"

namespace t2t {

class PairTree {
 public:
  /// Over so many parts in all.
  explicit PairTree(std::size_t parts) : parts_(parts) {}

  /// A sum of these parts comes next, whose first part is none of those that came before. Returns
  /// how many additions follow: each adds the last sum held to the one before it, which takes its
  /// place.
  std::size_t add(Range sum) {
    sums_.push_back(sum);
    std::size_t additions = 0;
    for (; sums_.size() >= 2 && are_a_pair(*(sums_.end() - 2), sums_.back()); ++additions) {
      (sums_.end() - 2)->end = sums_.back().end;
      sums_.pop_back();
    }
    return additions;
  }

  /// The sums held, in the order of parts. Once all parts have come, it is one sum.
  const std::vector<Range>& sums() const { return sums_; }

 private:
  /// The first has 2^k parts and begins at a multiple of 2^(k+1); the second has the next 2^k, or
  /// as many as there are.
  bool are_a_pair(Range first, Range second) const {
    const std::size_t size = first.size();
    return std::has_single_bit(size) && first.begin % (2 * size) == 0 &&
           first.end == second.begin && second.end == std::min(first.begin + 2 * size, parts_);
  }

  std::size_t parts_;
  std::vector<Range> sums_;
};

/// The sums that remain of a range of all parts once they have come one by one, and the most that
/// are held at a time on the way.
struct HeldSums {
  std::vector<Range> sums;
  std::size_t most = 0;
};
inline HeldSums sums_held(Range mine, std::size_t parts) {
  PairTree tree(parts);
  std::size_t most = 0;
  for (std::size_t part = mine.begin; part < mine.end; ++part) {
    most = std::max(most, tree.sums().size() + 1);
    tree.add({part, part + 1});
  }
  return {tree.sums(), most};
}

}  // namespace t2t
