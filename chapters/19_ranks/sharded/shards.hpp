// A shard: the part of each tensor that one of p ranks holds. Of a tensor of n elements, rank r has
// chunk r of p (ring.hpp's chunk_of), which an all-gather spreads and a reduce-scatter leaves.
//
//   w_q on 3 ranks    | rank 0's shard | rank 1's shard | rank 2's shard |
//
// Every tensor is cut by itself, so that a shard's elements know what they belong to: whether they
// decay, and which name an error has to give. Weights, gradients and the optimizer's means are all
// cut alike, or AdamW would combine elements of different weights.
#pragma once

#include <cstddef>
#include <vector>

#include "13_training/trainer/tensor_list.hpp"
#include "19_ranks/collectives/pair_tree.hpp"
#include "19_ranks/start/communicator.hpp"

namespace t2t {

/// The same tensors, but of each only this rank's chunk, in place.
std::vector<ListedTensor> chunks_of(const Communicator& ranks, std::vector<ListedTensor> tensors);

/// Memory for one rank's chunks of these tensors, set to 0, all chunks in one row.
class Shards {
 public:
  Shards(const Communicator& ranks, const std::vector<ListedTensor>& tensors);
  Shards(const Shards&) = delete;  // its list refers to its own memory
  Shards(Shards&&) = default;

  const std::vector<ListedTensor>& list() const { return list_; }
  Row row() { return elements_; }
  ConstRow row() const { return elements_; }

 private:
  std::vector<float> elements_;
  std::vector<ListedTensor> list_;
};

/// Rows of n elements on all ranks, of which each rank brings some and gets its own chunk of all:
/// one chunk after the other, in the order of ranks. `rows` says how many each rank brings; own has
/// this rank's. From each rank p − 1 messages, and all chunks but its own of each of its rows.
/// All ranks must call it. Throws as all_to_all does.
std::vector<float> own_chunks(const Communicator& ranks, const std::vector<ConstRow>& own,
                              const std::vector<std::size_t>& rows, std::size_t n);

/// Adds rows of equal lengths to the sums that `tree` says are held: the sum at place k is in
/// sums[k]. Row i is a sum of the parts added[i]; the rows lie one after the other.
void add_in_pairs(PairTree& tree, const std::vector<Range>& added, ConstRow rows,
                  const std::vector<Row>& sums);

}  // namespace t2t
