// Every message counted, by standing between the program and MPI: MPI promises each of its
// functions under a second name, PMPI_Send for MPI_Send. This folder defines MPI_Send, MPI_Ssend,
// MPI_Isend and MPI_Sendrecv: each counts, and calls its PMPI_ twin. Others, such as MPI_Bsend, are
// not counted. The program calls ours because the linker finds ours first. What MPI's own
// collectives send is not seen, since they do not call MPI_Send.
#pragma once

#include <cstddef>
#include <cstdint>

#include "19_ranks/collectives/messages.hpp"

namespace t2t {

struct Sent {
  std::uint64_t messages = 0, bytes = 0;

  bool operator==(const Sent&) const = default;
  Sent& operator+=(const Sent& other) {
    messages += other.messages, bytes += other.bytes;
    return *this;
  }
};
inline Sent operator+(Sent a, const Sent& b) { return a += b; }
inline Sent operator-(const Sent& a, const Sent& b) {
  return {a.messages - b.messages, a.bytes - b.bytes};
}

/// What this rank has sent since it was started, for one purpose or in all. A message with a tag
/// that is no Purpose counts as `other`.
Sent sent(Purpose purpose);
Sent sent();

}  // namespace t2t
