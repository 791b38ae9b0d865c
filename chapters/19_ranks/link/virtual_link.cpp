#include "19_ranks/link/virtual_link.hpp"

#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <stdexcept>

#include "19_ranks/link/system_clock.hpp"

namespace t2t {

namespace {
/// A time that is on its way.
struct Told {
  double arrival;
  MPI_Request request = MPI_REQUEST_NULL;
};
std::optional<Link> link;
Computing computing = Computing::takes_time;
double clock_now = 0, computed = 0;  // seconds
double link_free = 0;                // when the last message has left
double processor = 0;                // the thread's processor time at the last look
std::deque<Told> under_way;          // their addresses stay
}  // namespace

static double processor_seconds() { return seconds_on(CLOCK_THREAD_CPUTIME_ID); }

/// Adds what was computed since the last look.
static void look() {
  const double before = processor;
  processor = processor_seconds();
  if (computing == Computing::takes_none) return;
  clock_now += processor - before, computed += processor - before;
}

void set_virtual_link(const std::optional<Link>& wanted, Computing counted) {
  if (wanted && !(wanted->alpha >= 0 && wanted->beta > 0 && std::isfinite(wanted->alpha)))
    throw std::invalid_argument(
        fmt::format("link: wanted a latency of 0 or more and a bandwidth above 0, got {:g} s and "
                    "{:g} bytes/s",
                    wanted->alpha, wanted->beta));
  link = wanted, computing = counted;
  clock_now = computed = link_free = 0, processor = processor_seconds();
}

double virtual_seconds() {
  if (link) look();
  return clock_now;
}

double virtual_computing() {
  if (link) look();
  return computed;
}

/// The tag of the second message: those of the first are small.
static int tag_of_time(int tag) { return 1000 + tag; }

void link_sends(const Communicator& ranks, std::size_t to, std::size_t bytes, int tag) {
  if (!link) return;
  look();
  link_free = std::max(link_free, clock_now) + double(bytes) / link->beta;
  int done = 1;
  while (!under_way.empty() && done != 0) {
    MPI_Test(&under_way.front().request, &done, MPI_STATUS_IGNORE);
    if (done != 0) under_way.pop_front();
  }
  Told& told = under_way.emplace_back(Told{link_free + link->alpha});
  PMPI_Isend(&told.arrival, 1, MPI_DOUBLE, int(to), tag_of_time(tag), ranks.handle, &told.request);
}

void link_received(const Communicator& ranks, std::size_t from, int tag) {
  if (!link) return;
  double arrival = 0;
  MPI_Recv(&arrival, 1, MPI_DOUBLE, int(from), tag_of_time(tag), ranks.handle, MPI_STATUS_IGNORE);
  clock_now = std::max(clock_now, arrival);
}

void link_waits() {
  if (link) look();
}

void link_goes_on() {
  if (link) processor = processor_seconds();
}

}  // namespace t2t
