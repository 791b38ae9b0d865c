#include "19_ranks/counting/costs.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <vector>

#include "19_ranks/collectives/range.hpp"
#include "19_ranks/collectives/reduction.hpp"
#include "19_ranks/collectives/tree.hpp"
#include "shapes.hpp"
#include "statistics.hpp"
#include "timing/measure.hpp"

namespace t2t {

static Sent floats_in(std::size_t messages, std::size_t n) { return {messages, n * sizeof(float)}; }

/// All chunks but the one that the rank ends with.
Sent ring_reduce_scatter_cost(std::size_t n, std::size_t size, std::size_t rank) {
  return floats_in(size - 1, n - range_of(n, size, rank).size());
}
/// All chunks but the one that it gets last, the next rank's.
Sent ring_all_gather_cost(std::size_t n, std::size_t size, std::size_t rank) {
  return floats_in(size - 1, n - range_of(n, size, (rank + 1) % size).size());
}
Sent ring_all_reduce_cost(std::size_t n, std::size_t size, std::size_t rank) {
  return ring_reduce_scatter_cost(n, size, rank) + ring_all_gather_cost(n, size, rank);
}

/// One message up, but from rank 0, and one down to each rank that has sent one to this.
Sent tree_all_reduce_cost(std::size_t n, std::size_t size, std::size_t rank) {
  std::size_t messages = rank == 0 ? 0 : 1;
  for (std::size_t apart = 1; rank + apart < size && rank % (2 * apart) == 0; apart *= 2)
    ++messages;
  return floats_in(messages, messages * n);
}

/// A message for each of the rank's parts whose partner is another rank's, and its share of the
/// tree's messages down.
Sent pairs_all_reduce_cost(std::size_t n, std::size_t parts, std::size_t size, std::size_t rank) {
  const Range mine = range_of(parts, size, rank);
  std::size_t messages = tree_all_reduce_cost(0, size, rank).messages - (rank == 0 ? 0 : 1);
  for (std::size_t part = std::max<std::size_t>(mine.begin, 1); part < mine.end; ++part) {
    const std::size_t apart = part & (~part + 1);  // its lowest bit: the round in which it is sent
    if (part - apart < mine.begin) ++messages;
  }
  return floats_in(messages, messages * n);
}

Sent all_to_all_cost(std::size_t n, std::size_t size) {
  return floats_in(size - 1, n / size * (size - 1));
}

Chain ring_chain(std::size_t n, std::size_t size) {
  const std::size_t bytes = n * (size - 1) / size * sizeof(float);
  return {{2 * (size - 1), 2 * bytes}, bytes};
}
Chain tree_chain(std::size_t n, std::size_t size) {
  const std::size_t rounds = std::size_t(std::bit_width(size - 1));
  return {floats_in(2 * rounds, 2 * rounds * n), rounds * n * sizeof(float)};
}

Link fit_link(std::span<const Timing> timings) {
  expect(timings.size() >= 2, "times of messages", "at least 2", timings.size());
  // Least squares for α/t + (m/t)·s ≈ 1 with s = 1/β: two equations for α and s.
  double aa = 0, ab = 0, bb = 0, a1 = 0, b1 = 0;
  for (const auto& [bytes, seconds] : timings) {
    expect(seconds > 0, "seconds of a message", "more than 0", seconds);
    const double a = 1 / seconds, b = bytes / seconds;
    aa += a * a, ab += a * b, bb += b * b, a1 += a, b1 += b;
  }
  const double determinant = aa * bb - ab * ab;
  expect(determinant > 1e-12 * aa * bb, "bytes of messages", "at least two different numbers",
         timings[0].bytes);
  const double alpha = (bb * a1 - ab * b1) / determinant;
  const double inverse_beta = (aa * b1 - ab * a1) / determinant;
  return {alpha, 1 / inverse_beta};
}

/// Half of the seconds of two messages: there and back; or, if each rank sends one at the same
/// time, of two such exchanges, since a rank that is ahead in one is behind in the next.
static double one_message(const Communicator& ranks, Row x, Row y, Ways ways) {
  const auto start = std::chrono::steady_clock::now();
  const std::size_t other = 1 - ranks.rank;
  if (ways == Ways::at_once) {
    exchange(ranks, x, other, y, other, Purpose::measure);
    exchange(ranks, x, other, y, other, Purpose::measure);
  } else if (ranks.rank == 0) {
    send(ranks, x, other, Purpose::measure);
    receive(ranks, y, other, Purpose::measure);
  } else {
    receive(ranks, y, other, Purpose::measure);
    send(ranks, x, other, Purpose::measure);
  }
  return seconds_since(start) / 2;
}

double message_seconds(const Communicator& ranks, std::size_t n, Ways ways, std::size_t times) {
  expect(ranks.size >= 2, "ranks", "at least 2", ranks.size);
  expect(times >= 1, "times", "at least 1", times);
  std::vector<float> x(n), y(n);
  float median = 0;
  if (ranks.rank < 2) {
    std::vector<double> seconds(times);
    one_message(ranks, x, y, ways);
    for (double& one : seconds) one = one_message(ranks, x, y, ways);
    median = float(quantile(seconds, 0.5));
  }
  tree_broadcast(ranks, {&median, 1});
  return median;
}

double addition_seconds(std::size_t n, std::size_t times) {
  expect(n >= 1 && times >= 1, "floats and times", "at least 1", std::min(n, times));
  std::vector<float> x(n), y(n);
  std::vector<double> seconds(times);
  add_row(y, x);
  for (double& one : seconds) {
    const auto start = std::chrono::steady_clock::now();
    add_row(y, x);
    one = seconds_since(start) / double(n * sizeof(float));
  }
  return quantile(seconds, 0.5);
}

}  // namespace t2t
