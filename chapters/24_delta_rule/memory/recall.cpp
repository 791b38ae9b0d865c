#include "24_delta_rule/memory/recall.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "random.hpp"
#include "shapes.hpp"

namespace t2t {

using Vector = std::vector<double>;

static double product(const Vector& a, const Vector& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

static Vector random_vector(std::size_t D, Random& random, bool unit) {
  Vector x(D);
  for (double& value : x) value = random.next_normal();
  const double length = std::sqrt(product(x, x));
  if (unit)
    for (double& value : x) value /= length;
  return x;
}

/// All that was written, in order: write i is values[i] at keys[i % keys.size()].
struct Writes {
  std::vector<Vector> keys, values;
};

/// The state Sᵀ after all writes: [D] rows of [D], a row for each channel of a value.
static std::vector<Vector> state_of(Memory memory, const Writes& writes, std::size_t D) {
  std::vector<Vector> state(D, Vector(D));
  for (std::size_t i = 0; i < writes.values.size(); ++i) {
    const Vector& k = writes.keys[i % writes.keys.size()];
    for (std::size_t e = 0; e < D; ++e) {
      const double held = memory == Memory::delta ? product(state[e], k) : 0;
      for (std::size_t d = 0; d < D; ++d) state[e][d] += k[d] * (writes.values[i][e] - held);
    }
  }
  return state;
}

/// The mean of all values, weighted by softmax of 16·k·k_s.
static Vector softmax_reading(const Writes& writes, const Vector& k) {
  Vector sum(k.size());
  for (std::size_t i = 0; i < writes.values.size(); ++i) {
    const double weight = std::exp(16 * (product(k, writes.keys[i % writes.keys.size()]) - 1));
    for (std::size_t e = 0; e < sum.size(); ++e) sum[e] += weight * writes.values[i][e];
  }
  return sum;  // its length does not matter
}

/// Of all values written, the index of the nearest by angle.
static std::size_t nearest(const Writes& writes, const Vector& reading) {
  std::vector<double> cosines;
  for (const Vector& v : writes.values)
    cosines.push_back(product(v, reading) / std::sqrt(product(v, v)));
  return std::size_t(std::ranges::max_element(cosines) - cosines.begin());
}

double recall_share(Memory memory, const RecallTask& task, std::uint64_t seed) {
  const auto& [keys, times, D, draws] = task;
  expect(keys >= 1 && times >= 1 && D >= 1 && draws >= 1, "smallest number of the task",
         "at least 1", std::min({keys, times, D, draws}));
  std::size_t right = 0;
  for (std::size_t draw = 0; draw < draws; ++draw) {
    Random random(seed, draw);
    Writes writes;
    for (std::size_t i = 0; i < keys; ++i) writes.keys.push_back(random_vector(D, random, true));
    for (std::size_t i = 0; i < keys * times; ++i)
      writes.values.push_back(random_vector(D, random, false));
    const std::vector<Vector> state = state_of(memory, writes, D);
    for (std::size_t i = 0; i < keys; ++i) {
      Vector reading = softmax_reading(writes, writes.keys[i]);
      if (memory != Memory::softmax)
        for (std::size_t e = 0; e < D; ++e) reading[e] = product(state[e], writes.keys[i]);
      right += nearest(writes, reading) == keys * (times - 1) + i;
    }
  }
  return double(right) / double(draws * keys);
}

}  // namespace t2t
