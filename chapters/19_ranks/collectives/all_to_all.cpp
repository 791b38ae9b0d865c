#include "19_ranks/collectives/all_to_all.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string_view>

#include "19_ranks/collectives/messages.hpp"
#include "shapes.hpp"

namespace t2t {

static void expect_counts(std::string_view name, const Communicator& ranks,
                          std::span<const std::size_t> counts, std::size_t elements) {
  expect(counts.size() == ranks.size, name, fmt::format("{} counts", ranks.size), counts.size());
  const std::size_t sum = std::accumulate(counts.begin(), counts.end(), std::size_t(0));
  expect(sum == elements, name, fmt::format("counts whose sum is {}", elements), sum);
}

/// Block i of a row: after the blocks of ranks 0 to i − 1.
template <class Float>
static std::span<Float> block_of(std::span<Float> row, std::span<const std::size_t> counts,
                                 std::size_t i) {
  const auto before = counts.first(i);
  const std::size_t begin = std::accumulate(before.begin(), before.end(), std::size_t(0));
  return row.subspan(begin, counts[i]);
}

void all_to_all(const Communicator& ranks, ConstRow x, std::span<const std::size_t> x_counts, Row y,
                std::span<const std::size_t> y_counts) {
  const auto [handle, rank, size, limit] = ranks;
  expect_counts("x_counts", ranks, x_counts, x.size());
  expect_counts("y_counts", ranks, y_counts, y.size());
  expect(x_counts[rank] == y_counts[rank], "the own block of y",
         fmt::format("{} elements, as in x", x_counts[rank]), y_counts[rank]);
  std::ranges::copy(block_of(x, x_counts, rank), block_of(y, y_counts, rank).begin());
  // In round d everybody sends to the rank d after it, so that nobody receives from two at a time.
  for (std::size_t d = 1; d < size; ++d) {
    const std::size_t to = (rank + d) % size, from = (rank + size - d) % size;
    exchange(ranks, block_of(x, x_counts, to), to, block_of(y, y_counts, from), from,
             Purpose::all_to_all);
  }
}

}  // namespace t2t
