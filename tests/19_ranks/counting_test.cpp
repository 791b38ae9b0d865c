// Chapter 19: every message is counted, and the counts are the formulas'.
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "19_ranks/collectives/all_to_all.hpp"
#include "19_ranks/collectives/ring.hpp"
#include "19_ranks/collectives/tree.hpp"
#include "19_ranks/counting/costs.hpp"
#include "19_ranks/on_ranks.hpp"
#include "support/refuses.hpp"

namespace t2t::counting_tests {

using Floats = std::vector<float>;

/// What each rank's call sends: messages and bytes, as floats hold them exactly here.
static OnRanks counted(std::size_t p, const std::function<void(const Communicator&)>& call) {
  return on_ranks(p, [&](const Communicator& ranks) -> Floats {
    const Sent before = sent();
    call(ranks);
    const Sent now = sent() - before;
    return {float(now.messages), float(now.bytes)};
  });
}

static Floats figures(const Sent& cost) { return {float(cost.messages), float(cost.bytes)}; }

TEST_CASE(
    "by hand: a ring all-reduce of eight floats on four ranks sends six messages of 8 bytes") {
  CHECK(ring_all_reduce_cost(8, 4, 0) == Sent{6, 48});
  // 7 floats on 3 ranks, in chunks of 2, 2 and 3: rank 1 sends chunks 0 and 2, then 1 and 0.
  CHECK(ring_reduce_scatter_cost(7, 3, 1) == Sent{2, 20});
  CHECK(ring_all_gather_cost(7, 3, 1) == Sent{2, 16});
  // On a tree of 4 ranks, rank 0 sends the result to ranks 2 and 1, and rank 2 its sum and to 3.
  CHECK(tree_all_reduce_cost(8, 4, 0) == Sent{2, 64});
  CHECK(tree_all_reduce_cost(8, 4, 2) == Sent{2, 64});
  CHECK(tree_all_reduce_cost(8, 4, 3) == Sent{1, 32});
  CHECK(all_to_all_cost(8, 4) == Sent{3, 24});
}

TEST_CASE(
    "what is counted is the formula's, on each rank, for any number of ranks and any length") {
  for (std::size_t p = 1; p <= most_ranks; ++p)
    for (const std::size_t n : {0, 3, 11, 1000}) {
      CAPTURE(p);
      CAPTURE(n);
      Floats x(n);
      const auto expect_counts = [&](const auto& call, auto cost_of) {
        const OnRanks got = counted(p, call);
        REQUIRE(got.error == "");
        for (std::size_t r = 0; r < p; ++r) {
          CAPTURE(r);
          CHECK(got.results[r] == figures(cost_of(n, p, r)));
        }
      };
      expect_counts([&](const Communicator& c) { ring_reduce_scatter(c, x); },
                    ring_reduce_scatter_cost);
      expect_counts([&](const Communicator& c) { ring_all_gather(c, x); }, ring_all_gather_cost);
      expect_counts([&](const Communicator& c) { ring_all_reduce(c, x); }, ring_all_reduce_cost);
      expect_counts([&](const Communicator& c) { tree_all_reduce(c, x); }, tree_all_reduce_cost);
    }
}

TEST_CASE("all ranks of a ring together send 2·(p − 1)·n floats, and those of a tree as many") {
  for (std::size_t p = 1; p <= most_ranks; ++p)
    for (const std::size_t n : {0, 3, 11, 1000}) {
      Sent ring, tree;
      for (std::size_t r = 0; r < p; ++r)
        ring += ring_all_reduce_cost(n, p, r), tree += tree_all_reduce_cost(n, p, r);
      CHECK(ring == Sent{2 * p * (p - 1), 2 * (p - 1) * n * 4});
      CHECK(tree == Sent{2 * (p - 1), 2 * (p - 1) * n * 4});
    }
}

TEST_CASE("all-to-all sends p − 1 messages, and counts its own block for nothing") {
  for (std::size_t p = 1; p <= most_ranks; ++p) {
    const std::vector<std::size_t> counts(p, 6);
    Floats x(6 * p), y(6 * p);
    const OnRanks got =
        counted(p, [&](const Communicator& c) { all_to_all(c, x, counts, y, counts); });
    CHECK(first_wrong(got, figures(all_to_all_cost(6 * p, p))) == "");
  }
}

TEST_CASE("every function that sends is counted, by its purpose and in bytes of its type") {
  const OnRanks got = on_ranks(2, [](const Communicator& ranks) -> Floats {
    const int other = int(1 - ranks.rank), tag = int(Purpose::broadcast);
    double x[3] = {}, y[3];
    const Sent before = sent(Purpose::broadcast), others = sent(Purpose::other);
    MPI_Sendrecv(x, 3, MPI_DOUBLE, other, tag, y, 3, MPI_DOUBLE, other, tag, ranks.handle,
                 MPI_STATUS_IGNORE);
    if (ranks.rank == 0) {
      MPI_Send(x, 1, MPI_DOUBLE, other, tag, ranks.handle);
      MPI_Ssend(x, 2, MPI_CHAR, other, 77, ranks.handle);
    } else {
      MPI_Recv(y, 1, MPI_DOUBLE, other, tag, ranks.handle, MPI_STATUS_IGNORE);
      MPI_Recv(y, 2, MPI_CHAR, other, 77, ranks.handle, MPI_STATUS_IGNORE);
    }
    const Sent now = sent(Purpose::broadcast) - before, rest = sent(Purpose::other) - others;
    return {float(now.messages), float(now.bytes), float(rest.messages), float(rest.bytes)};
  });
  REQUIRE(got.error == "");
  CHECK(got.results[0] == Floats{2, 32, 1, 2});
  CHECK(got.results[1] == Floats{1, 24, 0, 0});
}

TEST_CASE("by hand: the link through two times, and the times that it predicts") {
  const Timing two[] = {{1000, 3e-6}, {3000, 5e-6}};
  const Link link = fit_link(two);
  CHECK(std::abs(link.alpha - 2e-6) < 1e-12);
  CHECK(std::abs(link.beta - 1e9) < 1);
  // Of times that no line goes through, each counts as a share: 10 and 20 of the same message give
  // the value between them whose relative errors have the least squares, 12.
  const Timing three[] = {{0, 10}, {0, 20}, {1e9, 1e9}};
  CHECK(std::abs(fit_link(three).alpha - 12) < 1e-3);
  CHECK(std::abs(seconds_of({2, 10}, 0.5, {{3, 50}, 8}) - 15) < 1e-12);
}

TEST_CASE("by hand: the longest chains of 100 floats") {
  CHECK(ring_chain(100, 4).sent == Sent{6, 600});
  CHECK(ring_chain(100, 4).bytes_added == 300);
  CHECK(tree_chain(100, 4).sent == Sent{4, 1600});
  CHECK(tree_chain(100, 4).bytes_added == 800);
  CHECK(tree_chain(100, 5).sent == Sent{6, 2400});
  CHECK(ring_chain(100, 1).sent == Sent{0, 0});
  CHECK(tree_chain(100, 1).sent == Sent{0, 0});
}

TEST_CASE("a fit refuses times that tell nothing") {
  const Timing one[] = {{1000, 3e-6}}, same[] = {{1000, 3e-6}, {1000, 4e-6}},
               none[] = {{1000, 3e-6}, {2000, 0}};
  REFUSES(fit_link(one), "times of messages: wanted at least 2, got 1");
  REFUSES(fit_link(same), "bytes of messages: wanted at least two different numbers, got 1000");
  REFUSES(fit_link(none), "seconds of a message: wanted more than 0, got 0");
}

TEST_CASE("the time of a message is above 0, and the same on all ranks") {
  for (const Ways ways : {Ways::in_turn, Ways::at_once}) {
    const OnRanks got = on_ranks(3, [ways](const Communicator& ranks) -> Floats {
      return {float(message_seconds(ranks, 10, ways, 3))};
    });
    REQUIRE(got.error == "");
    CHECK(got.results[0][0] > 0);
    CHECK(got.results[1] == got.results[0]);
    CHECK(got.results[2] == got.results[0]);
  }
  CHECK(addition_seconds(1000, 3) > 0);
}

}  // namespace t2t::counting_tests
