// A group of processes that send messages to each other, with MPI (Message Passing Interface, MPI
// Forum 1994): this process is one of `size`, and its number in the group is its rank.
#pragma once

#include <mpi.h>

#include <cstddef>

namespace t2t {

struct Communicator {
  MPI_Comm handle;
  std::size_t rank, size;  // rank is in [0, size)
  double limit = 60;       // seconds; a message that takes longer is an error
};

/// MPI, from MPI_Init to MPI_Finalize: main has one, and no process starts MPI twice.
class Mpi {
 public:
  /// Throws std::runtime_error when fewer or more processes were started than MPI knows of, as
  /// happens if mpirun and the library belong to different MPIs.
  Mpi();
  /// Ends all processes when this one goes because of an exception, since others may wait for it.
  ~Mpi();
  Mpi(const Mpi&) = delete;
  Mpi& operator=(const Mpi&) = delete;

  /// All processes.
  const Communicator& world() const { return world_; }

 private:
  Communicator world_;
  int exceptions_;  // in flight when it was made
};

/// The first `size` ranks of a group, in a communicator of their own. All ranks of the group must
/// call it; those that are left out get a size of 0. Errors in its calls are returned, and not
/// fatal. Throws std::invalid_argument unless size is from 1 to the group's.
Communicator first_ranks(const Communicator& group, std::size_t size);
void free_communicator(Communicator& group);

}  // namespace t2t
