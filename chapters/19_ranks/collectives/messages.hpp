// A message: floats that go from one rank to another. Each collective is made of these three calls.
//
// MPI_Send may return at once, with a copy of a short message, or wait until the other rank
// receives. Ranks that all send first and receive afterwards work with short messages, and wait for
// each other for ever with long ones. `exchange` does both at the same time. A rank that waits asks
// MPI again and again, and gives up its core in between: there may be more ranks than cores.
//
// In all three, ranks.limit bounds the waiting: after it they throw std::runtime_error, naming both
// ranks and what all of them wait for (start/wait_board.hpp). A receiver throws the same for a shorter message; a longer one is one of MPI's errors,
// which name this rank only. They throw std::invalid_argument for a rank that does not exist and
// for more than 2³⁰ elements.
#pragma once

#include <cstddef>

#include "19_ranks/start/communicator.hpp"
#include "tensor.hpp"

namespace t2t {

/// What a message is for: MPI's tag, by which the receiver takes the right one, and by which
/// messages are counted (counting/counts.hpp).
enum class Purpose { reduce_scatter, all_gather, reduce, broadcast, all_to_all, measure, other };
constexpr std::size_t purposes = 7;

void send(const Communicator& ranks, ConstRow x, std::size_t to, Purpose purpose);
/// The message must have y's length.
void receive(const Communicator& ranks, Row y, std::size_t from, Purpose purpose);
/// Sends x and receives y at the same time. The two must not overlap.
void exchange(const Communicator& ranks, ConstRow x, std::size_t to, Row y, std::size_t from,
              Purpose purpose);

}  // namespace t2t
