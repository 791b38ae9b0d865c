#include "19_ranks/counting/counts.hpp"

#include <mpi.h>

#include <array>
#include <numeric>

namespace t2t {

static std::array<Sent, purposes> counted;

Sent sent(Purpose purpose) { return counted[std::size_t(purpose)]; }
Sent sent() { return std::accumulate(counted.begin(), counted.end(), Sent{}); }

static void count_message(int count, MPI_Datatype type, int tag) {
  int size = 0;
  PMPI_Type_size(type, &size);
  const bool known = tag >= 0 && tag < int(purposes);
  counted[known ? std::size_t(tag) : std::size_t(Purpose::other)] +=
      {1, std::uint64_t(count) * std::uint64_t(size)};
}

}  // namespace t2t

// In the place of MPI's functions: each counts, and does what MPI's does.
extern "C" {

int MPI_Send(const void* x, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
  t2t::count_message(count, type, tag);
  return PMPI_Send(x, count, type, to, tag, comm);
}

int MPI_Ssend(const void* x, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
  t2t::count_message(count, type, tag);
  return PMPI_Ssend(x, count, type, to, tag, comm);
}

int MPI_Isend(const void* x, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request* request) {
  t2t::count_message(count, type, tag);
  return PMPI_Isend(x, count, type, to, tag, comm, request);
}

int MPI_Sendrecv(const void* x, int count, MPI_Datatype type, int to, int tag, void* y, int y_count,
                 MPI_Datatype y_type, int from, int y_tag, MPI_Comm comm, MPI_Status* status) {
  t2t::count_message(count, type, tag);
  return PMPI_Sendrecv(x, count, type, to, tag, y, y_count, y_type, from, y_tag, comm, status);
}

}  // extern "C"
