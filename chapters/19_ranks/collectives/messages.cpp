#include "19_ranks/collectives/messages.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <time.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <utility>

#include "19_ranks/link/virtual_link.hpp"
#include "19_ranks/start/wait_board.hpp"
#include "shapes.hpp"
#include "timing/measure.hpp"

namespace t2t {

/// Throws what MPI says of a call that failed.
static void expect_done(int code, const Communicator& ranks) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw std::runtime_error(
      fmt::format("rank {}: {}", ranks.rank, std::string(text, std::size_t(length))));
}

Transfer::Transfer(const Communicator& ranks, std::size_t other, std::size_t count, bool sends)
    : ranks_(ranks), other_(other), count_(count), sends_(sends) {
  constexpr std::size_t most = std::size_t(1) << 30;
  expect(other < ranks.size, "rank", fmt::format("below {}", ranks.size), other);
  expect(count <= most, "elements of a message", fmt::format("at most {}", most), count);
}

Transfer::~Transfer() {
  if (request_ == MPI_REQUEST_NULL) return;
  if (!sends_) MPI_Cancel(&request_);
  MPI_Request_free(&request_);
}

void Transfer::begin_send(const float* x, Purpose purpose) {
  link_sends(ranks_, other_, count_ * sizeof(float), int(purpose));
  expect_done(
      MPI_Isend(x, int(count_), MPI_FLOAT, int(other_), int(purpose), ranks_.handle, &request_),
      ranks_);
}

void Transfer::begin_receive(float* y, Purpose purpose) {
  purpose_ = int(purpose);
  expect_done(
      MPI_Irecv(y, int(count_), MPI_FLOAT, int(other_), int(purpose), ranks_.handle, &request_),
      ranks_);
}

/// Lets others have the core: at first for a moment, later for longer.
static void give_way(double waited) {
  const timespec nap{0, waited < 1 ? 50'000 : 1'000'000};  // nanoseconds
  if (waited < 1e-3)
    sched_yield();
  else
    nanosleep(&nap, nullptr);
}

void Transfer::throw_limit(const std::string& what) const {
  const std::string report = wait_report();
  throw std::runtime_error(fmt::format("{} have not gone through after {:g} seconds{}{}", what,
                                       ranks_.limit, report.empty() ? "" : ": ", report));
}

void Transfer::finish() {
  link_waits();
  wait();
  if (!sends_) link_received(ranks_, other_, purpose_);
  link_goes_on();
}

void Transfer::wait() {
  const auto start = std::chrono::steady_clock::now();
  const auto what = [&] {
    return fmt::format("rank {}: {} elements {} rank {}", ranks_.rank, count_,
                       sends_ ? "for" : "from", other_);
  };
  MPI_Status status;
  note_no_wait();  // a wait that ended with an error stays, for the others to see
  bool noted = false;
  for (int done = 0; done == 0;) {
    expect_done(MPI_Test(&request_, &done, &status), ranks_);
    if (done != 0) break;
    const double waited = seconds_since(start);
    if (waited > 0.01 && !std::exchange(noted, true)) note_wait(ranks_, other_, sends_);
    if (waited > ranks_.limit) throw_limit(what());
    give_way(waited);
  }
  if (noted) note_no_wait();
  if (sends_) return;
  int got = 0;
  MPI_Get_count(&status, MPI_FLOAT, &got);
  if (std::size_t(got) != count_) throw std::runtime_error(fmt::format("{}: got {}", what(), got));
}

void send(const Communicator& ranks, ConstRow x, std::size_t to, Purpose purpose) {
  Transfer sending(ranks, to, x.size(), true);
  sending.begin_send(x.data(), purpose);
  sending.finish();
}

void receive(const Communicator& ranks, Row y, std::size_t from, Purpose purpose) {
  Transfer receiving(ranks, from, y.size(), false);
  receiving.begin_receive(y.data(), purpose);
  receiving.finish();
}

void exchange(const Communicator& ranks, ConstRow x, std::size_t to, Row y, std::size_t from,
              Purpose purpose) {
  Transfer receiving(ranks, from, y.size(), false), sending(ranks, to, x.size(), true);
  receiving.begin_receive(y.data(), purpose);
  sending.begin_send(x.data(), purpose);
  receiving.finish();
  sending.finish();
}

}  // namespace t2t
