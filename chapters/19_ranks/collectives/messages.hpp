// A message: floats that go from one rank to another. Each collective is made of the three calls
// below, and a pipeline (chapter 21) of single transfers.
//
// MPI_Send may return at once, with a copy of a short message, or wait until the other rank
// receives. Ranks that all send first and receive afterwards work with short messages, and wait for
// each other for ever with long ones. `exchange` does both at the same time. A rank that waits asks
// MPI again and again, and gives up its core in between: there may be more ranks than cores.
//
// In all of them, ranks.limit bounds the waiting: after it they throw std::runtime_error, naming
// both ranks and what all of them wait for (start/wait_board.hpp). A receiver throws the same for a
// shorter message; a longer one is one of MPI's errors, which name this rank only. They throw
// std::invalid_argument for a rank that does not exist and for more than 2³⁰ elements.
#pragma once

#include <cstddef>
#include <string>

#include "19_ranks/start/communicator.hpp"
#include "tensor.hpp"

namespace t2t {

/// What a message is for: MPI's tag, by which the receiver takes the right one, and by which
/// messages are counted (counting/counts.hpp).
enum class Purpose { reduce_scatter, all_gather, reduce, broadcast, all_to_all, measure, other };
constexpr std::size_t purposes = 7;

/// One send or one receive, which goes on while the rank does something else. Its floats must stay
/// where they are, and those that are sent also as they are, until finish() has returned.
class Transfer {
 public:
  /// With rank `other`, of `count` floats; the communicator must outlive it.
  Transfer(const Communicator& ranks, std::size_t other, std::size_t count, bool sends);
  /// One that is not finished, because of an error, is given up.
  ~Transfer();
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  void begin_send(const float* x, Purpose purpose);
  void begin_receive(float* y, Purpose purpose);
  /// Waits until the floats have arrived, or may be changed again.
  void finish();

 private:
  void wait();
  [[noreturn]] void throw_limit(const std::string& what) const;

  const Communicator& ranks_;
  std::size_t other_, count_;  // of elements
  bool sends_;
  int purpose_ = 0;
  MPI_Request request_ = MPI_REQUEST_NULL;
};

void send(const Communicator& ranks, ConstRow x, std::size_t to, Purpose purpose);
/// The message must have y's length.
void receive(const Communicator& ranks, Row y, std::size_t from, Purpose purpose);
/// Sends x and receives y at the same time. The two must not overlap.
void exchange(const Communicator& ranks, ConstRow x, std::size_t to, Row y, std::size_t from,
              Purpose purpose);

}  // namespace t2t
