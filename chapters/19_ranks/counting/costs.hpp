// What a collective costs, by formula: what each rank sends, and how long it takes on a link with a
// latency α and a bandwidth β (Hockney 1994, "The communication challenge for MPP"):
//
//   a message of m bytes takes α + m/β
//
// The functions return what one rank sends for n floats among `size` ranks. Chunks of a ring differ
// by an element where size does not divide n, and the formulas count them as they are.
#pragma once

#include <cstddef>
#include <span>

#include "19_ranks/counting/counts.hpp"
#include "19_ranks/link/link.hpp"

namespace t2t {

Sent ring_reduce_scatter_cost(std::size_t n, std::size_t size, std::size_t rank);
Sent ring_all_gather_cost(std::size_t n, std::size_t size, std::size_t rank);
Sent ring_all_reduce_cost(std::size_t n, std::size_t size, std::size_t rank);
Sent tree_all_reduce_cost(std::size_t n, std::size_t size, std::size_t rank);
Sent pairs_all_reduce_cost(std::size_t n, std::size_t parts, std::size_t size, std::size_t rank);
/// With blocks of equal lengths, n in all: size must divide n.
Sent all_to_all_cost(std::size_t n, std::size_t size);

/// The longest chain of an all-reduce: what happens one after another, whatever else happens at the
/// same time. On a ring it is what one rank does, on a tree ⌈log₂ p⌉ rounds there and back.
struct Chain {
  Sent sent;
  std::uint64_t bytes_added;
};
Chain ring_chain(std::size_t n, std::size_t size);
Chain tree_chain(std::size_t n, std::size_t size);

/// Seconds of a chain: α and m/β for each message, and γ for each byte that is added to another.
inline double seconds_of(const Link& link, double gamma, const Chain& chain) {
  return double(chain.sent.messages) * link.alpha + double(chain.sent.bytes) / link.beta +
         double(chain.bytes_added) * gamma;
}

struct Timing {
  double bytes, seconds;  // of one message
};

/// The link that fits these times best: it has the least sum of squares of (α + m/β − t)/t, errors
/// as shares of each time. Throws std::invalid_argument for fewer than two times, for times that
/// are not above 0, and when all have the same number of bytes. Noisy times can give an α or β
/// below 0.
Link fit_link(std::span<const Timing> timings);

/// One message at a time, from rank 0 to rank 1 and back, or two at once, as on a ring.
enum class Ways { in_turn, at_once };
/// Seconds of a message of n floats between ranks 0 and 1: the median over `times` messages after a
/// warm-up. All ranks must call it, and get the same figure; others than 0 and 1 wait. Throws
/// std::invalid_argument for fewer than two ranks and for no times.
double message_seconds(const Communicator& ranks, std::size_t n, Ways ways, std::size_t times);

/// γ, in seconds per byte: the median over `times` additions of n floats to n others. Throws
/// std::invalid_argument when n or times is 0.
double addition_seconds(std::size_t n, std::size_t times);

}  // namespace t2t
