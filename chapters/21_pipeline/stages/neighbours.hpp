// The messages between neighbouring stages: the stream x goes to the next stage, and its gradient
// dx comes back.
//
//   stage s − 1   x →  ← dx   stage s   x →  ← dx   stage s + 1
//
// Under 1F1B two neighbours send to each other at the same time. If each waited until the other
// one receives, both would wait for ever. A send here therefore only begins: it copies x, since the
// stage's next operation overwrites it, and returns. Stages wait for what they receive, and each
// schedule computes that before anything that depends on it. Each micro-batch and direction has a
// tag of its own, so that stages with different orders wait for each other, until the time limit,
// in place of exchanging their micro-batches.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "19_ranks/collectives/messages.hpp"
#include "tensor.hpp"

namespace t2t {

class Neighbours {
 public:
  /// Of the stage that is rank ranks.rank of ranks.size. Throws std::invalid_argument for more than
  /// 16,000 parts, since MPI promises tags only up to 32,767.
  Neighbours(const Communicator& ranks, std::size_t parts);
  Neighbours(const Neighbours&) = delete;  // what is under way refers to its own memory
  Neighbours& operator=(const Neighbours&) = delete;

  /// All x and dx are [N, C] without gaps between rows. They throw as messages.hpp says.
  void receive_x(Matrix x, std::size_t part);      // from the stage before
  void receive_dx(Matrix dx, std::size_t part);    // from the stage after
  void send_x(ConstMatrix x, std::size_t part);    // to the stage after
  void send_dx(ConstMatrix dx, std::size_t part);  // to the stage before
  /// Waits until everything has been received.
  void finish();

 private:
  enum Way { to_next, to_previous };
  /// One message may be under way in each direction: the next one waits for it.
  struct Outgoing {
    std::vector<float> copy;  // [N·C]
    std::optional<Transfer> transfer;
  };
  void post(Way way, ConstMatrix x, std::size_t part);

  Communicator ranks_;
  std::array<Outgoing, 2> outgoing_;  // by Way
};

}  // namespace t2t
