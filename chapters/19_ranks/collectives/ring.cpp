#include "19_ranks/collectives/ring.hpp"

#include "19_ranks/collectives/messages.hpp"
#include "19_ranks/collectives/range.hpp"
#include "19_ranks/collectives/reduction.hpp"

namespace t2t {

Row chunk_of(Row x, std::size_t chunks, std::size_t c) {
  const Range range = range_of(x.size(), chunks, c);
  return x.subspan(range.begin, range.size());
}

static std::size_t next_of(const Communicator& ranks) { return (ranks.rank + 1) % ranks.size; }
static std::size_t previous_of(const Communicator& ranks) {
  return (ranks.rank + ranks.size - 1) % ranks.size;
}

/// Rank r begins with chunk r − 1, so that its last sum is that of chunk r.
RingStep reduce_scatter_step(std::size_t rank, std::size_t size, std::size_t step) {
  const std::size_t sends = (rank + 2 * size - 1 - step) % size;
  return {sends, (sends + size - 1) % size};
}

/// Rank r begins with its own chunk.
RingStep all_gather_step(std::size_t rank, std::size_t size, std::size_t step) {
  const std::size_t sends = (rank + size - step) % size;
  return {sends, (sends + size - 1) % size};
}

void run_reduce_scatter_step(const Communicator& ranks, Row x, std::size_t step) {
  const RingStep chunks = reduce_scatter_step(ranks.rank, ranks.size, step);
  const Row own = chunk_of(x, ranks.size, chunks.receives);
  const Row sum = room_for(own.size());  // of the ranks before this one
  exchange(ranks, chunk_of(x, ranks.size, chunks.sends), next_of(ranks), sum, previous_of(ranks),
           Purpose::reduce_scatter);
  add_row(own, sum);
}

void run_all_gather_step(const Communicator& ranks, Row x, std::size_t step) {
  const RingStep chunks = all_gather_step(ranks.rank, ranks.size, step);
  exchange(ranks, chunk_of(x, ranks.size, chunks.sends), next_of(ranks),
           chunk_of(x, ranks.size, chunks.receives), previous_of(ranks), Purpose::all_gather);
}

void ring_reduce_scatter(const Communicator& ranks, Row x) {
  for (std::size_t step = 0; step + 1 < ranks.size; ++step) run_reduce_scatter_step(ranks, x, step);
}

void ring_all_gather(const Communicator& ranks, Row x) {
  for (std::size_t step = 0; step + 1 < ranks.size; ++step) run_all_gather_step(ranks, x, step);
}

void ring_all_reduce(const Communicator& ranks, Row x) {
  ring_reduce_scatter(ranks, x);
  ring_all_gather(ranks, x);
}

}  // namespace t2t
