// Chapter 19: messages on the clocks of a link that is not there.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <vector>

#include "19_ranks/collectives/messages.hpp"
#include "19_ranks/collectives/ring.hpp"
#include "19_ranks/collectives/tree.hpp"
#include "19_ranks/collectives/values.hpp"
#include "19_ranks/counting/costs.hpp"
#include "19_ranks/link/system_clock.hpp"
#include "19_ranks/link/virtual_link.hpp"
#include "19_ranks/on_ranks.hpp"
#include "support/refuses.hpp"

namespace t2t::link_tests {

using Floats = std::vector<float>;

/// Powers of two, so that a few sums are exact: a millisecond or so, and a megabyte in a second.
constexpr Link slow = {0x1p-10, 0x1p20};

/// The clock after a call, of messages alone.
static Floats seconds_of(const Communicator& ranks, const std::function<void()>& call) {
  wait_for_all(ranks);
  set_virtual_link(slow, Computing::takes_none);
  call();
  const double seconds = virtual_seconds();
  set_virtual_link(std::nullopt);
  return {float(seconds)};
}

TEST_CASE("by hand: a message, one after it, and the answer") {
  // 2^10 floats take 2^-8 s to leave, and arrive 2^-10 s later. The second one waits for the link.
  const OnRanks got = on_ranks(2, [](const Communicator& ranks) {
    Floats x(1 << 10);
    return seconds_of(ranks, [&] {
      if (ranks.rank == 0) {
        send(ranks, x, 1, Purpose::other);
        send(ranks, x, 1, Purpose::other);
        receive(ranks, Row(x).first(1), 1, Purpose::other);
      } else {
        receive(ranks, x, 0, Purpose::other);
        receive(ranks, x, 0, Purpose::other);
        send(ranks, Row(x).first(1), 0, Purpose::other);
      }
    });
  });
  const float second = 2 * 0x1p-8f + 0x1p-10f;
  CHECK(got.error == "");
  if (got.error.empty()) CHECK(got.results[1] == Floats{second});
  if (got.error.empty()) CHECK(got.results[0] == Floats{second + 0x1p-18f + 0x1p-10f});
}

TEST_CASE("by hand: a message that came earlier does not set the receiver's clock back") {
  const OnRanks got = on_ranks(3, [](const Communicator& ranks) {
    Floats x(1 << 10);
    return seconds_of(ranks, [&] {
      if (ranks.rank == 0) send(ranks, x, 1, Purpose::other);
      if (ranks.rank == 2) send(ranks, Row(x).first(1), 1, Purpose::other);
      if (ranks.rank != 1) return;
      receive(ranks, x, 0, Purpose::other);                // at 2^-8 + 2^-10 s
      receive(ranks, Row(x).first(1), 2, Purpose::other);  // which was there at 2^-18 + 2^-10 s
    });
  });
  CHECK(got.error == "");
  if (got.error.empty()) CHECK(got.results[1] == Floats{0x1p-8f + 0x1p-10f});
}

TEST_CASE("a ring and a tree take the time of their formulas") {
  constexpr std::size_t n = 60 * 64;  // which 1 to 5 ranks divide
  for (std::size_t p = 1; p <= most_ranks; ++p) {
    CAPTURE(p);
    const OnRanks ring = on_ranks(p, [&](const Communicator& ranks) {
      Floats x(n);
      return seconds_of(ranks, [&] { ring_all_reduce(ranks, x); });
    });
    const double want = seconds_of(slow, 0, ring_chain(n, p));
    CHECK(ring.error == "");
    for (const Floats& seconds : ring.results)
      CHECK(std::abs(double(seconds[0]) - want) <= 1e-6 * want);
    const OnRanks tree = on_ranks(p, [&](const Communicator& ranks) {
      Floats x(n);
      return seconds_of(ranks, [&] { tree_all_reduce(ranks, x); });
    });
    CHECK(tree.error == "");
    float longest = 0;
    for (const Floats& seconds : tree.results) longest = std::max(longest, seconds[0]);
    const double chain = seconds_of(slow, 0, tree_chain(n, p));
    CHECK(double(longest) <= chain * (1 + 1e-6));
    // With a power of two the last rank's chain is the formula's; otherwise some rounds are
    // missing.
    if ((p & (p - 1)) == 0) CHECK(double(longest) >= chain * (1 - 1e-6));
  }
}

/// Uses the processor for so long.
static void compute(double seconds) {
  const auto used = [] { return seconds_on(CLOCK_THREAD_CPUTIME_ID); };
  for (const double end = used() + seconds; used() < end;) continue;
}

TEST_CASE("computing takes its processor time, on all ranks at the same time, and waiting none") {
  const OnRanks got = on_ranks(4, [](const Communicator& ranks) {
    Floats x(1);
    wait_for_all(ranks);
    set_virtual_link(Link{0, 1e12});
    compute(ranks.rank == 2 ? 0.05 : 0.01);
    ring_all_reduce(ranks, x);  // until then all have waited for rank 2
    const double seconds = virtual_seconds();
    set_virtual_link(std::nullopt);
    return Floats{seconds >= 0.05 ? 1.f : 0.f, seconds < 0.08 ? 1.f : 0.f,
                  virtual_seconds() == 0 ? 1.f : 0.f};
  });
  CHECK(first_wrong(got, {1, 1, 1}) == "");
}

TEST_CASE("a link without bandwidth, or with a latency below 0, is refused") {
  REFUSES(set_virtual_link(Link{1, 0}),
          "link: wanted a latency of 0 or more and a bandwidth above 0, got 1 s and 0 bytes/s");
  REFUSES(set_virtual_link(Link{-1, 1}),
          "link: wanted a latency of 0 or more and a bandwidth above 0, got -1 s and 1 bytes/s");
}

}  // namespace t2t::link_tests
