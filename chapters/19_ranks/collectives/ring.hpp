// Collectives on a ring: rank r sends to r + 1 and receives from r − 1, modulo p, the number of
// ranks. A vector of n elements is cut into p chunks, and in each step every rank sends one chunk.
//
//   reduce-scatter   p − 1 steps; then rank r has the sum of chunk r
//   all-gather       p − 1 steps; then every rank has all chunks
//   all-reduce       both: 2·(p − 1) messages and about 2·(p − 1)/p·n elements from each rank
//
// In every all-reduce, some rank sends at least as much (Patarasuk and Yuan 2009, "Bandwidth
// optimal all-reduce algorithms for clusters of workstations"). All ranks of the group must call
// these functions, with equal lengths. n may be anything, also 0 and less than p: empty chunks are
// sent as empty messages. They throw as messages.hpp says.
#pragma once

#include <cstddef>

#include "19_ranks/start/communicator.hpp"
#include "tensor.hpp"

namespace t2t {

/// The elements of chunk c of x, which is cut into `chunks`. Lengths differ by 1 at most.
Row chunk_of(Row x, std::size_t chunks, std::size_t c);

/// Which chunks a rank sends and receives in a step, from 0.
struct RingStep {
  std::size_t sends, receives;
};
RingStep reduce_scatter_step(std::size_t rank, std::size_t size, std::size_t step);
RingStep all_gather_step(std::size_t rank, std::size_t size, std::size_t step);

/// One step, for programs that look at x in between.
void run_reduce_scatter_step(const Communicator& ranks, Row x, std::size_t step);
void run_all_gather_step(const Communicator& ranks, Row x, std::size_t step);

/// Chunk `rank` of x becomes the sum over all ranks; the other chunks then hold sums of some ranks.
/// The order of the sum: chunk c is ((x of rank c + 1) + rank c + 2) + … + rank c, modulo p.
void ring_reduce_scatter(const Communicator& ranks, Row x);

/// Each rank has chunk `rank` of x; then all have all chunks.
void ring_all_gather(const Communicator& ranks, Row x);

/// x becomes the sum over all ranks, the same bits everywhere. The order is reduce-scatter's, which
/// differs by chunk: with another p or n, an element is added in another order.
void ring_all_reduce(const Communicator& ranks, Row x);

}  // namespace t2t
