#include "19_ranks/start/wait_board.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

namespace t2t {

namespace {
/// What a rank writes. All zeros, as in a new file: it waits for nobody.
struct Line {
  std::atomic<std::uint64_t> since;  // nanoseconds of the machine's steady clock; 0: does not wait
  std::atomic<std::uint32_t> rank;   // for which it waits, in MPI_COMM_WORLD
  std::atomic<std::uint32_t> sends;  // 1: to send to it
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

struct Board {
  std::atomic<std::uint64_t>* opened = nullptr;  // how many ranks have; in front of the lines
  std::span<Line> lines;                         // [ranks]
  std::size_t own = 0;
};
Board board;
}  // namespace

static std::size_t bytes_for(std::size_t ranks) {
  return sizeof(std::atomic<std::uint64_t>) + ranks * sizeof(Line);
}

std::string make_wait_board(std::size_t ranks) {
  for (std::string name : {"/dev/shm/t2t-ranks-XXXXXX", "/tmp/t2t-ranks-XXXXXX"}) {
    const int file = mkstemp(name.data());
    if (file < 0) continue;
    const bool made = ftruncate(file, off_t(bytes_for(ranks))) == 0;
    close(file);
    if (made) return name;
    unlink(name.c_str());
  }
  return "";
}

void open_wait_board(const Communicator& world) {
  const char* name = std::getenv(wait_board_variable);
  const int file = name == nullptr ? -1 : open(name, O_RDWR | O_CLOEXEC);
  if (file < 0) return;
  const off_t length = lseek(file, 0, SEEK_END);
  void* const memory =
      length == off_t(bytes_for(world.size))
          ? mmap(nullptr, bytes_for(world.size), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)
          : MAP_FAILED;
  close(file);
  if (memory == MAP_FAILED) return;
  board.opened = static_cast<std::atomic<std::uint64_t>*>(memory);
  board.lines = {reinterpret_cast<Line*>(board.opened + 1), world.size};
  board.own = world.rank;
  if (++*board.opened == world.size) unlink(name);
}

static std::uint64_t now() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return std::uint64_t(std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
}

/// A group's rank in MPI_COMM_WORLD.
static std::uint32_t world_rank(const Communicator& group, std::size_t rank) {
  MPI_Group ranks, all;
  MPI_Comm_group(group.handle, &ranks);
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  const int of_group = int(rank);
  int of_world = 0;
  MPI_Group_translate_ranks(ranks, 1, &of_group, all, &of_world);
  MPI_Group_free(&ranks), MPI_Group_free(&all);
  return std::uint32_t(of_world);
}

void note_wait(const Communicator& group, std::size_t other, bool sends) {
  if (board.lines.empty()) return;
  Line& line = board.lines[board.own];
  line.rank = world_rank(group, other), line.sends = sends, line.since = now();
}

void note_no_wait() {
  if (!board.lines.empty()) board.lines[board.own].since = 0;
}

/// The ranks that wait for each other, beginning with the own one, if it is among them.
static std::vector<std::size_t> circle() {
  std::vector<std::size_t> met;
  for (std::size_t rank = board.own; std::ranges::find(met, rank) == met.end();) {
    met.push_back(rank);
    if (rank >= board.lines.size() || board.lines[rank].since == 0) return {};
    rank = board.lines[rank].rank;
    if (rank == board.own) return met;
  }
  return {};
}

std::string wait_report() {
  std::string report;
  const std::uint64_t at = now();
  for (std::size_t r = 0; r < board.lines.size(); ++r) {
    const Line& line = board.lines[r];
    const std::uint64_t since = line.since;
    report += fmt::format("{}rank {} ", r == 0 ? "" : ", ", r);
    report += since == 0 ? std::string("is in no call")
                         : fmt::format("waits {} rank {} ({:.1f} s)",
                                       line.sends == 0 ? "for" : "to send to", line.rank.load(),
                                       1e-9 * double(at - std::min(at, since)));
  }
  if (const std::vector<std::size_t> ranks = circle(); !ranks.empty())
    report += fmt::format("; a deadlock: {}, {}", fmt::join(ranks, ", "), ranks.front());
  return report;
}

}  // namespace t2t
