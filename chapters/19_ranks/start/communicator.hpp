// A group of processes that send messages to each other, with MPI (Message Passing Interface, MPI
// Forum 1994): this process is one of `size`, and its number in the group is its rank.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <exception>
#include <functional>
#include <string>

namespace t2t {

struct Communicator {
  MPI_Comm handle;
  std::size_t rank, size;  // rank is in [0, size)
  double limit = 60;       // seconds; a message that takes longer is an error
};

/// MPI, from MPI_Init to MPI_Finalize: a program has one, and no process starts MPI twice. Where
/// the system can, the process ends when the launcher that started it is killed.
class Mpi {
 public:
  /// One thread at a time may then send and receive. Throws std::runtime_error when fewer or more
  /// processes were started than MPI knows of, as happens if mpirun and the library belong to
  /// different MPIs.
  Mpi();
  ~Mpi();
  Mpi(const Mpi&) = delete;
  Mpi& operator=(const Mpi&) = delete;

  /// All processes.
  const Communicator& world() const { return world_; }

 private:
  Communicator world_;
};

/// Prints a line with the program's name, the rank and the error on stderr, and ends all ranks,
/// since others may wait for this one.
[[noreturn]] void end_all_ranks(const std::string& program, const Communicator& world,
                                const std::exception& error);

/// A program's part that runs on all ranks, between MPI_Init and MPI_Finalize. Returns what it
/// returns. What it throws on some rank ends all ranks.
int run_on_ranks(const std::string& program, const std::function<int(const Communicator&)>& part);

/// From here on only rank 0 writes to the terminal. Throws std::runtime_error when /dev/null can't
/// be opened.
void silence_others(const Communicator& world);

/// The first `size` ranks of a group, in a communicator of their own. All ranks of the group must
/// call it; those that are left out get a size of 0. Errors in its calls are returned, and not
/// fatal. Throws std::invalid_argument unless size is from 1 to the group's.
Communicator first_ranks(const Communicator& group, std::size_t size);
/// This rank alone.
inline Communicator single_rank() { return {MPI_COMM_SELF, 0, 1}; }

/// The ranks of a group with the same number as this one, in their order. All ranks of the group
/// must call it.
Communicator ranks_with_equal(const Communicator& group, std::size_t number);
void free_communicator(Communicator& group);

}  // namespace t2t
