#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "19_ranks/collectives/ring.hpp"
#include "19_ranks/collectives/tree.hpp"
#include "19_ranks/collectives/values.hpp"
#include "19_ranks/counting/costs.hpp"
#include "19_ranks/shows/ranks_text.hpp"
#include "19_ranks/shows/show_costs.hpp"
#include "memory.hpp"
#include "program/print.hpp"
#include "statistics.hpp"
#include "timing/measure.hpp"

namespace t2t {

/// The median over so many calls of the time until the last rank is done. All ranks must call it.
static double median_time(const Communicator& ranks, std::size_t times,
                          const std::function<void()>& call) {
  std::vector<double> seconds;
  for (std::size_t i = 0; i <= times; ++i) {  // the first is a warm-up
    wait_for_all(ranks);
    const auto start = std::chrono::steady_clock::now();
    call();
    const double slowest = largest_value(ranks, seconds_since(start));
    if (i > 0) seconds.push_back(slowest);
  }
  return quantile(seconds, 0.5);
}

/// MPI's own all-reduce. A rank that waits gives up its core, as ours do.
static void mpi_all_reduce(const Communicator& ranks, Row x) {
  MPI_Request request;
  MPI_Iallreduce(MPI_IN_PLACE, x.data(), int(x.size()), MPI_FLOAT, MPI_SUM, ranks.handle, &request);
  for (int done = 0; done == 0; sched_yield()) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
}

/// What messages and additions cost here.
struct Measured {
  Link in_turn, at_once;
  double gamma;
};

static Measured measure(const Communicator& world, std::size_t times) {
  std::vector<Timing> in_turn, at_once;
  for (const std::size_t n : {1, 64, 1024, 8192, 65'536, 524'288}) {
    const double bytes = double(n * sizeof(float));
    in_turn.push_back({bytes, message_seconds(world, n, Ways::in_turn, times)});
    at_once.push_back({bytes, message_seconds(world, n, Ways::at_once, times)});
  }
  return {fit_link(in_turn), fit_link(at_once), addition_seconds(262'144, times)};
}

static void print_link(const char* ways, const Link& link) {
  print_paragraph(fmt::format("{}: α = {} for any message, β = {}/s.", ways,
                              duration_text(link.alpha), bytes_text(link.beta)));
}

void show_times(const Communicator& world) {
  if (world.size < 2) return;
  const std::size_t times = std::getenv("T2T_BRIEF") != nullptr ? 1 : 31;
  const auto [in_turn, at_once, gamma] = measure(world, times);
  // Here the cores copy the messages: where there are more ranks than cores, they take turns.
  const double cores = std::max(1u, std::thread::hardware_concurrency());
  const double turns = std::max(1.0, double(world.size) / cores);
  Table table({"all-reduce", ">floats", ">predicted", ">measured"});
  for (const std::size_t n : {256, 1'048'576}) {
    std::vector<float> x(n);
    const auto add = [&](const char* name, double predicted, const std::function<void()>& call) {
      table.add({name, with_commas(n), predicted > 0 ? duration_text(predicted) : "",
                 duration_text(median_time(world, times, call))});
    };
    add("on a ring", turns * seconds_of(at_once, gamma, ring_chain(n, world.size)),
        [&] { ring_all_reduce(world, x); });
    add("on a tree", turns * seconds_of(in_turn, gamma, tree_chain(n, world.size)),
        [&] { tree_all_reduce(world, x); });
    add("MPI's own", 0, [&] { mpi_all_reduce(world, x); });
  }
  if (world.rank != 0) return;
  print_section("How long it takes");
  print_link("One message at a time between two ranks", in_turn);
  print_link("One each way at the same time", at_once);
  print_paragraph(fmt::format("To add two vectors: γ = {:.3f} ns per byte.", 1e9 * gamma));
  fmt::print("\n");
  table.print();
  fmt::print("\n");
  print_paragraph(
      fmt::format("Medians of {} calls, until the last rank is done. Predicted: the longest chain "
                  "of messages at α + m/β each, and of additions{}.",
                  times,
                  turns > 1 ? fmt::format(", times {:g}, since {} share {} cores", turns,
                                          ranks_text(world.size), cores)
                            : ""));
}

}  // namespace t2t
