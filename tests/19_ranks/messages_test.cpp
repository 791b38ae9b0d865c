// Chapter 19: messages between two ranks, and how the ranks are started.
#include "19_ranks/collectives/messages.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sched.h>

#include <chrono>
#include <cstdlib>
#include <vector>

#include "19_ranks/collectives/values.hpp"
#include "19_ranks/on_ranks.hpp"
#include "19_ranks/start/start_ranks.hpp"
#include "support/refuses.hpp"
#include "timing/measure.hpp"

namespace t2t::messages_tests {

using Floats = std::vector<float>;

TEST_CASE("two ranks exchange messages of any length, both at the same time") {
  for (const std::size_t n : {0, 1, 1000, 1'000'000}) {
    CAPTURE(n);
    const OnRanks got = on_ranks(2, [n](const Communicator& ranks) {
      const Floats x = fractions(ranks.rank, n);
      Floats y(n);
      exchange(ranks, x, 1 - ranks.rank, y, 1 - ranks.rank, Purpose::other);
      return y;
    });
    CHECK(got.error == "");
    CHECK((got.results[0] == fractions(1, n)));
    CHECK((got.results[1] == fractions(0, n)));
  }
}

/// 1 if this is what the call throws, or 0.
static float throws_this(const std::function<void()>& call, const std::string& message) {
  return refusal_of<std::runtime_error>(call, message) ? 1 : 0;
}

TEST_CASE("a message of another length is an error on the rank that receives it") {
  const OnRanks got = on_ranks(2, [](const Communicator& ranks) -> Floats {
    Floats x(5);
    if (ranks.rank == 0) return send(ranks, Row(x).first(4), 1, Purpose::other), Floats{1};
    return {throws_this([&] { receive(ranks, x, 0, Purpose::other); },
                        "rank 1: 5 elements from rank 0: got 4")};
  });
  CHECK(first_wrong(got, {1}) == "");
}

/// What receiving from a rank throws if nothing comes within the limit.
static std::string no_message(const Communicator& ranks, std::size_t from, double limit) {
  Floats x(3);
  Communicator impatient = ranks;
  impatient.limit = limit;
  try {
    receive(impatient, x, from, Purpose::other);
    return "nothing";
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}
static float says(const std::string& message, const std::string& part) {
  return message.find(part) != message.npos ? 1 : 0;
}

TEST_CASE("a message that nobody sends is an error, once the limit has passed") {
  const OnRanks got = on_ranks(3, [](const Communicator& ranks) -> Floats {
    const std::size_t next = (ranks.rank + 1) % 3, last = (ranks.rank + 2) % 3;
    const auto start = std::chrono::steady_clock::now();
    const std::string message = no_message(ranks, next, 0.5);
    const double waited = seconds_since(start);
    const std::string begin = fmt::format(
        "rank {}: 3 elements from rank {} have not gone through after 0.5 seconds: rank 0 ",
        ranks.rank, next);
    return {message.starts_with(begin) ? 1.f : 0.f, waited > 0.5 && waited < 10 ? 1.f : 0.f,
            says(message, fmt::format("rank {} waits for rank {} (", ranks.rank, next)),
            says(message,
                 fmt::format("; a deadlock: {}, {}, {}, {}", ranks.rank, next, last, ranks.rank))};
  });
  CHECK(first_wrong(got, {1, 1, 1, 1}) == "");
}

TEST_CASE("who waits for a rank that computes learns that, and that it is no deadlock") {
  const OnRanks got = on_ranks(3, [](const Communicator& ranks) -> Floats {
    wait_for_all(ranks);  // so that nobody seems to wait any more
    if (ranks.rank == 1) {
      const auto start = std::chrono::steady_clock::now();
      while (seconds_since(start) < 1.5) sched_yield();
      return Floats{1, 1, 1};
    }
    const std::string message = no_message(ranks, 1, 0.4);
    return {says(message, " waits for rank 1 ("), says(message, ", rank 1 is in no call, "),
            says(message, "deadlock") == 0 ? 1.f : 0.f};
  });
  CHECK(first_wrong(got, {1, 1, 1}) == "");
}

TEST_CASE("messages refuse ranks that do not exist") {
  Floats x(3);
  REFUSES(send(all_ranks(), x, 5, Purpose::other), "rank: wanted below 5, got 5");
  REFUSES(receive(all_ranks(), x, 9, Purpose::other), "rank: wanted below 5, got 9");
  REFUSES(first_ranks(all_ranks(), 0), "ranks: wanted from 1 to 5, got 0");
  REFUSES(first_ranks(all_ranks(), 6), "ranks: wanted from 1 to 5, got 6");
}

TEST_CASE("mpirun is found, and what is missing is said if it is not there") {
  CHECK(is_rank());
  CHECK(find_mpirun() != "");
  setenv("T2T_MPIRUN", "/none/mpirun", 1);
  REFUSES_AS(find_mpirun(),
             "mpirun, which starts the ranks, is missing: /none/mpirun (Debian: openmpi-bin "
             "libopenmpi-dev; ./learn setup installs them)",
             std::runtime_error);
  unsetenv("T2T_MPIRUN");
}

}  // namespace t2t::messages_tests
