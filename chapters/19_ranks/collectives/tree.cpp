#include "19_ranks/collectives/tree.hpp"

#include <bit>

#include "19_ranks/collectives/messages.hpp"
#include "19_ranks/collectives/reduction.hpp"

namespace t2t {

void tree_reduce(const Communicator& ranks, Row x) {
  const auto [handle, rank, size, limit] = ranks;
  for (std::size_t apart = 1; apart < size; apart *= 2) {
    // A rank that has sent its sum is done.
    if (rank % (2 * apart) == apart) return send(ranks, x, rank - apart, Purpose::reduce);
    if (rank + apart < size) {
      const Row sum = room_for(x.size());  // of the ranks from rank + apart on
      receive(ranks, sum, rank + apart, Purpose::reduce);
      add_row(x, sum);
    }
  }
}

void tree_broadcast(const Communicator& ranks, Row x) {
  const auto [handle, rank, size, limit] = ranks;
  // The rounds of tree_reduce backwards, and each pair's message the other way.
  for (std::size_t apart = std::bit_ceil(size) / 2; apart >= 1; apart /= 2) {
    if (rank % (2 * apart) == apart) receive(ranks, x, rank - apart, Purpose::broadcast);
    if (rank % (2 * apart) == 0 && rank + apart < size)
      send(ranks, x, rank + apart, Purpose::broadcast);
  }
}

void tree_all_reduce(const Communicator& ranks, Row x) {
  tree_reduce(ranks, x);
  tree_broadcast(ranks, x);
}

}  // namespace t2t
