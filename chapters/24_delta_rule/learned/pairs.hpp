// The task of multi-query recall: pairs of a key and a value, then the keys again, in another
// order. After each of them the model is to name the key's value.
//
//   ids       k3 v1 k7 v4 k1 v9 │ k7 k1 k3
//   targets    ·  ·  ·  ·  ·  · │ v4 v9 v1         · is not learned
//
// With `times` above 1, each key is written that often, each time with another value, and the last
// one counts. Every sequence draws its keys and values anew: nothing can be learned by heart. Arora
// et al. 2023, "Zoology", where the questions are spread over a longer text.
#pragma once

#include <cstddef>
#include <vector>

#include "random.hpp"

namespace t2t {

struct PairsTask {
  std::size_t pairs;         // different keys
  std::size_t times = 1;     // how often each is written
  std::size_t symbols = 32;  // keys to draw from, and values

  std::size_t T() const { return (2 * times + 1) * pairs; }
  std::size_t V() const { return 2 * symbols; }  // keys first, then values
};
/// Throws std::invalid_argument, naming the value, unless pairs and times are at least 1, and pairs
/// at most the symbols.
void expect_pairs(const PairsTask& task);

struct PairsText {
  std::vector<int> ids;      // [T]
  std::vector<int> targets;  // [T], not_learned before the questions
};
/// Draws one sequence. Values may repeat, keys do not within a round of writing. Throws as
/// expect_pairs does.
PairsText draw_pairs_text(const PairsTask& task, Random& random);

}  // namespace t2t
