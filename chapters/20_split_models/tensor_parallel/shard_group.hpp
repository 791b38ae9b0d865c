// The ranks that divide a model by tensor parallelism, as each of them sees them: its number, and
// the two collectives that the parts of a model need. They are rings (chapter 19), unless somebody
// brings others, as chapter 22 does.
#pragma once

#include <cstddef>
#include <functional>

#include "19_ranks/collectives/ring.hpp"
#include "19_ranks/start/communicator.hpp"

namespace t2t {

/// ring_all_reduce or tree_all_reduce.
using AllReduce = void (*)(const Communicator& ranks, Row x);

struct ShardGroup {
  std::size_t rank, size;
  /// x becomes the sum over all ranks, the same bits on each.
  std::function<void(Row x)> sum;
  /// Each rank has chunk `rank` of x, as ring.hpp's chunk_of cuts it; then all have all chunks.
  std::function<void(Row x)> gather;

  ShardGroup(const Communicator& ranks, AllReduce all_reduce = ring_all_reduce)
      : rank(ranks.rank),
        size(ranks.size),
        sum([ranks, all_reduce](Row x) { all_reduce(ranks, x); }),
        gather([ranks](Row x) { ring_all_gather(ranks, x); }) {}
  ShardGroup(std::size_t number, std::size_t count, std::function<void(Row)> sums,
             std::function<void(Row)> gathers)
      : rank(number), size(count), sum(std::move(sums)), gather(std::move(gathers)) {}
};

}  // namespace t2t
