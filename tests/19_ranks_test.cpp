// Chapter 19: collectives are what they promise, in the order of sums that they promise.
#include <doctest/doctest.h>
#include <unistd.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "19_ranks/collectives/all_to_all.hpp"
#include "19_ranks/collectives/ring.hpp"
#include "19_ranks/collectives/tree.hpp"
#include "19_ranks/collectives/values.hpp"
#include "19_ranks/on_ranks.hpp"
#include "support/lists.hpp"
#include "support/refuses.hpp"

namespace t2t::ranks_tests {

using Floats = std::vector<float>;
using AllReduce = void (*)(const Communicator&, Row);

// Fewer elements than ranks, lengths that no number of ranks divides, and messages so long that MPI
// does not copy them: a rank that sends first, and receives afterwards, would wait for ever.
constexpr std::size_t lengths[] = {0, 1, 2, 3, 4, 5, 7, 64, 1001, 100'003};

static void mpi_all_reduce(const Communicator& ranks, Row x) {
  MPI_Allreduce(MPI_IN_PLACE, x.data(), int(x.size()), MPI_FLOAT, MPI_SUM, ranks.handle);
}

static OnRanks reduced(std::size_t p, std::size_t n, AllReduce all_reduce,
                       Floats (*of)(std::size_t, std::size_t)) {
  return on_ranks(p, [=](const Communicator& ranks) {
    Floats x = of(ranks.rank, n);
    all_reduce(ranks, x);
    return x;
  });
}

static Floats sum_of_whole_numbers(std::size_t p, std::size_t n) {
  Floats sum(n);
  for (std::size_t r = 0; r < p; ++r) {
    const Floats x = whole_numbers(r, n);
    for (std::size_t i = 0; i < n; ++i) sum[i] += x[i];
  }
  return sum;
}

TEST_CASE("by hand: the chunks of seven elements, and what three ranks send") {
  Floats x(7);
  std::iota(x.begin(), x.end(), 0.f);
  const Row chunks[] = {chunk_of(x, 3, 0), chunk_of(x, 3, 1), chunk_of(x, 3, 2)};
  CHECK(Floats(chunks[0].begin(), chunks[0].end()) == Floats{0, 1});
  CHECK(Floats(chunks[1].begin(), chunks[1].end()) == Floats{2, 3});
  CHECK(Floats(chunks[2].begin(), chunks[2].end()) == Floats{4, 5, 6});
  // Rank 0 sends chunk 2, and then the sum of chunk 1, to which it has added its own.
  CHECK(reduce_scatter_step(0, 3, 0).sends == 2);
  CHECK(reduce_scatter_step(0, 3, 0).receives == 1);
  CHECK(reduce_scatter_step(0, 3, 1).sends == 1);
  CHECK(reduce_scatter_step(0, 3, 1).receives == 0);
  CHECK(all_gather_step(0, 3, 0).sends == 0);
  CHECK(all_gather_step(0, 3, 1).sends == 2);
  CHECK(all_gather_step(0, 3, 1).receives == 1);
}

TEST_CASE("by hand: three ranks with (1, 2), (10, 20) and (100, 200) have (111, 222)") {
  for (const AllReduce all_reduce : {ring_all_reduce, tree_all_reduce})
    CHECK(first_wrong(on_ranks(3,
                               [&](const Communicator& ranks) {
                                 const float one = float(std::pow(10, ranks.rank));
                                 Floats x = {one, 2 * one};
                                 all_reduce(ranks, x);
                                 return x;
                               }),
                      {111, 222}) == "");
}

TEST_CASE("all-reduces of whole numbers equal MPI's own, on any number of ranks, for any length") {
  for (std::size_t p = 1; p <= most_ranks; ++p)
    for (const std::size_t n : lengths) {
      CAPTURE(p);
      CAPTURE(n);
      const Floats want = sum_of_whole_numbers(p, n);
      CHECK(first_wrong(reduced(p, n, mpi_all_reduce, whole_numbers), want) == "");
      CHECK(first_wrong(reduced(p, n, ring_all_reduce, whole_numbers), want) == "");
      CHECK(first_wrong(reduced(p, n, tree_all_reduce, whole_numbers), want) == "");
    }
}

TEST_CASE("after a reduce-scatter rank r has the sum of chunk r, and an all-gather spreads it") {
  for (std::size_t p = 1; p <= most_ranks; ++p)
    for (const std::size_t n : {3, 11, 1001}) {
      CAPTURE(p);
      CAPTURE(n);
      Floats want = sum_of_whole_numbers(p, n);
      const OnRanks scattered = reduced(p, n, ring_reduce_scatter, whole_numbers);
      REQUIRE(scattered.error == "");
      for (std::size_t r = 0; r < p; ++r) {
        Floats got = scattered.results[r];
        const Row mine = chunk_of(got, p, r), sum = chunk_of(want, p, r);
        CHECK(Floats(mine.begin(), mine.end()) == Floats(sum.begin(), sum.end()));
      }
      const OnRanks gathered = on_ranks(p, [&](const Communicator& ranks) {
        Floats x(n, -1);
        std::ranges::copy(chunk_of(want, p, ranks.rank), chunk_of(x, p, ranks.rank).begin());
        ring_all_gather(ranks, x);
        return x;
      });
      CHECK(first_wrong(gathered, want) == "");
    }
}

/// The sum of all ranks' fractions, each chunk in the order in which it goes round the ring.
static Floats sum_on_a_ring(std::size_t p, std::size_t n) {
  Floats sum(n);
  for (std::size_t c = 0; c < p; ++c) {
    const Row chunk = chunk_of(sum, p, c);
    for (std::size_t i = 0; i < p; ++i) {
      Floats all = fractions((c + 1 + i) % p, n);
      const Row x = chunk_of(all, p, c);
      for (std::size_t k = 0; k < chunk.size(); ++k) chunk[k] = i == 0 ? x[k] : chunk[k] + x[k];
    }
  }
  return sum;
}

/// The same in fixed pairs: of ranks from `first` on, at most `count`, a power of two.
static Floats sum_in_pairs(std::size_t p, std::size_t n, std::size_t first, std::size_t count) {
  if (count == 1) return fractions(first, n);
  Floats sum = sum_in_pairs(p, n, first, count / 2);
  if (first + count / 2 >= p) return sum;
  const Floats second = sum_in_pairs(p, n, first + count / 2, count / 2);
  for (std::size_t i = 0; i < n; ++i) sum[i] += second[i];
  return sum;
}

/// With one rank that comes late: its messages arrive after others'.
template <AllReduce all_reduce, std::size_t late>
static void reduce_late(const Communicator& ranks, Row x) {
  if (ranks.rank == late) usleep(30'000);
  all_reduce(ranks, x);
}

TEST_CASE("the order of a sum is the one that is promised, bit by bit, whoever comes late") {
  constexpr std::size_t n = 203;
  for (std::size_t p = 1; p <= most_ranks; ++p) {
    CAPTURE(p);
    const Floats ring = sum_on_a_ring(p, n), tree = sum_in_pairs(p, n, 0, 8);
    for (const AllReduce reduce :
         {ring_all_reduce, reduce_late<ring_all_reduce, 0>, reduce_late<ring_all_reduce, 1>})
      CHECK(first_wrong(reduced(p, n, reduce, fractions), ring) == "");
    for (const AllReduce reduce :
         {tree_all_reduce, reduce_late<tree_all_reduce, 1>, reduce_late<tree_all_reduce, 2>})
      CHECK(first_wrong(reduced(p, n, reduce, fractions), tree) == "");
  }
}

TEST_CASE("sums of fractions are within the bound of p − 1 additions, as MPI's own are") {
  constexpr std::size_t n = 1001;
  for (std::size_t p = 2; p <= most_ranks; ++p)
    for (const AllReduce all_reduce : {ring_all_reduce, tree_all_reduce, mpi_all_reduce}) {
      CAPTURE(p);
      const OnRanks got = reduced(p, n, all_reduce, fractions);
      REQUIRE(got.error == "");
      double worst = 0;  // as a share of the bound
      for (std::size_t i = 0; i < n; ++i) {
        double sum = 0, magnitude = 0;
        for (std::size_t r = 0; r < p; ++r)
          sum += fractions(r, n)[i], magnitude += std::abs(fractions(r, n)[i]);
        const double bound = double(p - 1) * 0x1p-24 * magnitude * 1.001;
        for (const Floats& x : got.results) worst = std::max(worst, std::abs(x[i] - sum) / bound);
      }
      CHECK(worst <= 1);
    }
}

TEST_CASE("a broadcast gives every rank what rank 0 has") {
  for (std::size_t p = 1; p <= most_ranks; ++p) {
    CAPTURE(p);
    CHECK(first_wrong(reduced(p, 77, tree_broadcast, fractions), fractions(0, 77)) == "");
  }
}

TEST_CASE("by hand: values of each rank, their sums and the largest, and a wait for all") {
  const OnRanks got = on_ranks(3, [](const Communicator& ranks) -> Floats {
    const double own = 1 + double(ranks.rank) * 0x1p-40;  // more than a float holds
    const std::vector<double> each = value_of_each(ranks, own);
    Floats right;
    for (std::size_t r = 0; r < 3; ++r) right.push_back(each[r] == 1 + double(r) * 0x1p-40);
    right.push_back(largest_value(ranks, own) == 1 + 2 * 0x1p-40);
    const std::vector<double> sums = sum_of_values(ranks, {own, -2.5});
    right.push_back(sums[0] == 3 + 3 * 0x1p-40 && sums[1] == -7.5);
    wait_for_all(ranks);
    return right;
  });
  CHECK(first_wrong(got, {1, 1, 1, 1, 1}) == "");
}

/// How many elements rank i has for rank j: some none.
static std::size_t elements_for(std::size_t i, std::size_t j) { return (3 * i + 5 * j) % 7 * 40; }

TEST_CASE("all-to-all brings each block to its rank, and the blocks may be of any length") {
  for (std::size_t p = 1; p <= most_ranks; ++p) {
    CAPTURE(p);
    const OnRanks got = on_ranks(p, [p](const Communicator& ranks) {
      std::vector<std::size_t> x_counts, y_counts;
      Floats x, y;
      for (std::size_t i = 0; i < p; ++i) {
        x_counts.push_back(elements_for(ranks.rank, i));
        y_counts.push_back(elements_for(i, ranks.rank));
        x.insert(x.end(), x_counts.back(), float(10 * ranks.rank + i));
        y.insert(y.end(), y_counts.back(), -1);
      }
      all_to_all(ranks, x, x_counts, y, y_counts);
      return y;
    });
    REQUIRE(got.error == "");
    for (std::size_t r = 0; r < p; ++r) {
      Floats want;
      for (std::size_t i = 0; i < p; ++i)
        want.insert(want.end(), elements_for(i, r), float(10 * i + r));
      CHECK(got.results[r] == want);
    }
  }
}

TEST_CASE("all-to-all refuses counts that are not of this row and these ranks") {
  Floats x(10), y(10);
  const std::vector<std::size_t> even(5, 2), four(4, 2), nine = {2, 2, 2, 2, 1};
  std::vector<std::size_t> other = {2, 2, 2, 2, 2};
  ++other[all_ranks().rank], --other[(all_ranks().rank + 1) % 5];
  REFUSES(all_to_all(all_ranks(), x, four, y, even), "x_counts: wanted 5 counts, got 4");
  REFUSES(all_to_all(all_ranks(), x, even, y, nine),
          "y_counts: wanted counts whose sum is 10, got 9");
  REFUSES(all_to_all(all_ranks(), x, even, y, other),
          "the own block of y: wanted 2 elements, as in x, got 3");
}

}  // namespace t2t::ranks_tests
