// Sums whose order does not depend on the number of ranks. A model is always divided into the same
// number of shards, and a rank has several of them:
//
//   shard         0   1   2   3   4   5   6   7
//   on 3 ranks    0   0   1   1   1   2   2   2
//   sum           ((0 + 1) + (2 + 3)) + ((4 + 5) + (6 + 7))          in chapter 19's fixed pairs
//
// Each shard computes with calls of the same shapes on one thread, whichever rank it is on, and
// thus gets the same bits on equal processors. A sum over shards is one of terms in fixed pairs. A
// rank adds two of its own terms itself, and only where a pair lies on two ranks is a message sent.
//
// The code of a shard runs as if it were alone on its rank, and calls sums in the middle of a pass.
// Each shard of a rank therefore has a thread, and the threads take turns: one runs until it needs
// the others' terms, then the next one. No two of them run at the same time.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <vector>

#include "19_ranks/collectives/range.hpp"
#include "19_ranks/counting/counts.hpp"
#include "20_split_models/tensor_parallel/shard_group.hpp"

namespace t2t {

class ShardTeam {
 public:
  /// The shards range_of(shards, ranks.size, ranks.rank) of so many in all. Throws
  /// std::invalid_argument for fewer shards than ranks.
  ShardTeam(const Communicator& ranks, std::size_t shards);
  ShardTeam(const ShardTeam&) = delete;  // its groups refer to it
  ShardTeam& operator=(const ShardTeam&) = delete;

  std::size_t shards() const { return shards_; }
  Range own() const { return own_; }
  /// The group of the i-th own shard, to be used in run only, by that shard. All shards must make
  /// the same calls. They throw as messages.hpp says.
  ShardGroup group(std::size_t i);

  /// Calls this for each own shard, i = 0, 1, …, each in a thread of its own, in turns. Returns
  /// when all have returned. If one throws, the others stop, and run throws the same.
  void run(const std::function<void(std::size_t i)>& shard);
  /// In run: returns when all own shards have called it.
  void meet(std::size_t i);

 private:
  /// Waits for the other own shards; the last one calls `together` before all go on.
  void meet(std::size_t i, const std::function<void()>& together);
  void pass_turn(std::size_t i);
  void wait_for_turn(std::size_t i);
  void sum_rows();
  void gather_rows();

  Communicator ranks_;
  std::size_t shards_;
  Range own_;
  std::vector<Row> rows_;                 // [own shards] of the collective that goes on
  std::vector<std::vector<float>> sums_;  // [own shards], its terms and then sums of them

  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t turn_ = 0;
  std::exception_ptr error_;
};

/// What one rank sends for a sum over shards of n floats, and to gather n floats.
Sent team_sum_cost(std::size_t n, std::size_t shards, std::size_t ranks, std::size_t rank);
Sent team_gather_cost(std::size_t n, std::size_t shards, std::size_t ranks, std::size_t rank);

}  // namespace t2t
