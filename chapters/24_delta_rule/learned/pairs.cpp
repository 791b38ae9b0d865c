#include "24_delta_rule/learned/pairs.hpp"

#include <numeric>
#include <string>
#include <utility>

#include "13_training/backward/cross_entropy.hpp"
#include "shapes.hpp"

namespace t2t {

void expect_pairs(const PairsTask& task) {
  expect(task.pairs >= 1 && task.pairs <= task.symbols, "pairs of a key and a value",
         "1 to " + std::to_string(task.symbols), task.pairs);
  expect(task.times >= 1, "times that each key is written", "at least 1", task.times);
}

/// The first `count` of a random order of x.
static void shuffle_front(std::vector<int>& x, std::size_t count, Random& random) {
  for (std::size_t i = 0; i < count; ++i)
    std::swap(x[i], x[i + std::size_t(random.next_uniform() * double(x.size() - i))]);
}

PairsText draw_pairs_text(const PairsTask& task, Random& random) {
  expect_pairs(task);
  std::vector<int> keys(task.symbols), value_of(task.symbols);
  std::iota(keys.begin(), keys.end(), 0);
  shuffle_front(keys, task.pairs, random);
  keys.resize(task.pairs);

  PairsText text;
  for (std::size_t n = 0; n < task.times; ++n) {
    shuffle_front(keys, task.pairs, random);
    for (const int key : keys) {
      value_of[std::size_t(key)] =
          int(task.symbols + std::size_t(random.next_uniform() * double(task.symbols)));
      text.ids.insert(text.ids.end(), {key, value_of[std::size_t(key)]});
    }
  }
  text.targets.assign(text.ids.size(), not_learned);
  shuffle_front(keys, task.pairs, random);
  for (const int key : keys) {
    text.ids.push_back(key);
    text.targets.push_back(value_of[std::size_t(key)]);
  }
  return text;
}

}  // namespace t2t
