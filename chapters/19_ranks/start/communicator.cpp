#include "19_ranks/start/communicator.hpp"

#include <fmt/format.h>
#if defined(__linux__)
#include <sys/prctl.h>
#endif

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <stdexcept>

#include "19_ranks/start/start_ranks.hpp"
#include "19_ranks/start/wait_board.hpp"
#include "shapes.hpp"

namespace t2t {

static Communicator communicator_of(MPI_Comm handle) {
  int rank = 0, size = 0;
  MPI_Comm_rank(handle, &rank);
  MPI_Comm_size(handle, &size);
  MPI_Comm_set_errhandler(handle, MPI_ERRORS_RETURN);
  return {handle, std::size_t(rank), std::size_t(size)};
}

Mpi::Mpi() {
#if defined(__linux__)
  prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
  int threads = 0;  // what MPI grants
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &threads);
  world_ = communicator_of(MPI_COMM_WORLD);
  open_wait_board(world_);
  const char* text = std::getenv(ranks_variable);
  const std::size_t started = text == nullptr ? world_.size : std::strtoul(text, nullptr, 10);
  if (started == world_.size && threads >= MPI_THREAD_SERIALIZED) return;
  MPI_Finalize();
  if (started == world_.size)
    throw std::runtime_error("this MPI lets no thread but the first one send and receive");
  throw std::runtime_error(fmt::format(
      "{} processes were started, but MPI knows of {}: mpirun and the program's library seem to "
      "belong to different MPIs",
      started, world_.size));
}

Mpi::~Mpi() { MPI_Finalize(); }

void end_all_ranks(const std::string& program, const Communicator& world,
                   const std::exception& error) {
  std::cerr << fmt::format("{}: rank {}: {}\n", program, world.rank, error.what());
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::_Exit(1);
}

int run_on_ranks(const std::string& program, const std::function<int(const Communicator&)>& part) {
  const Mpi mpi;
  try {
    return part(mpi.world());
  } catch (const std::exception& error) {
    end_all_ranks(program, mpi.world(), error);
  }
}

void silence_others(const Communicator& world) {
  if (world.rank != 0 && std::freopen("/dev/null", "w", stdout) == nullptr)
    throw std::runtime_error("/dev/null can't be opened");
}

static Communicator split_by(const Communicator& group, int colour) {
  MPI_Comm handle = MPI_COMM_NULL;
  MPI_Comm_split(group.handle, colour, int(group.rank), &handle);
  if (handle == MPI_COMM_NULL) return {MPI_COMM_NULL, 0, 0, group.limit};
  Communicator part = communicator_of(handle);
  part.limit = group.limit;
  return part;
}

Communicator first_ranks(const Communicator& group, std::size_t size) {
  expect(size >= 1 && size <= group.size, "ranks", fmt::format("from 1 to {}", group.size), size);
  return split_by(group, group.rank < size ? 0 : MPI_UNDEFINED);
}

Communicator ranks_with_equal(const Communicator& group, std::size_t number) {
  return split_by(group, int(number));
}

void free_communicator(Communicator& group) {
  if (group.handle != MPI_COMM_NULL) MPI_Comm_free(&group.handle);
}

}  // namespace t2t
