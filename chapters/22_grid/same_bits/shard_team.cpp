#include "22_grid/same_bits/shard_team.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <thread>

#include "19_ranks/collectives/all_to_all.hpp"
#include "19_ranks/collectives/pairs.hpp"
#include "19_ranks/counting/costs.hpp"
#include "linalg.hpp"
#include "shapes.hpp"

namespace t2t {

/// What ends a shard's thread when another shard has thrown.
struct Stopped {};

ShardTeam::ShardTeam(const Communicator& ranks, std::size_t shards)
    : ranks_(ranks), shards_(shards), own_(range_of(shards, ranks.size, ranks.rank)) {
  expect(shards >= ranks.size, "shards",
         fmt::format("at least one for each of {} ranks", ranks.size), shards);
  rows_.resize(own_.size()), sums_.resize(own_.size());
}

ShardGroup ShardTeam::group(std::size_t i) {
  const auto with_row = [this, i](void (ShardTeam::*together)()) {
    return [this, i, together](Row x) {
      rows_[i] = x;
      meet(i, [this, together] { (this->*together)(); });
    };
  };
  return {own_.begin + i, shards_, with_row(&ShardTeam::sum_rows),
          with_row(&ShardTeam::gather_rows)};
}

void ShardTeam::pass_turn(std::size_t i) {
  {
    const std::lock_guard lock(mutex_);
    turn_ = (i + 1) % own_.size();
  }
  changed_.notify_all();
}

void ShardTeam::wait_for_turn(std::size_t i) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return turn_ == i || error_; });
  if (error_) throw Stopped();
}

void ShardTeam::meet(std::size_t i, const std::function<void()>& together) {
  if (i + 1 == own_.size()) together();
  pass_turn(i);
  wait_for_turn(i);
}
void ShardTeam::meet(std::size_t i) {
  meet(i, [] {});
}

void ShardTeam::run(const std::function<void(std::size_t)>& shard) {
  turn_ = 0, error_ = nullptr;
  const auto run_one = [&](std::size_t i) {
    set_threads(1);  // products on more threads may add in another order
    try {
      wait_for_turn(i);
      shard(i);
    } catch (const Stopped&) {
    } catch (...) {
      const std::lock_guard lock(mutex_);
      error_ = std::current_exception();
    }
    pass_turn(i);
  };
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < own_.size(); ++i) threads.emplace_back(run_one, i);
  for (std::thread& thread : threads) thread.join();
  if (error_) std::rethrow_exception(error_);
}

/// This rank's first row becomes the sum of all shards' rows, the same on every rank, and is copied
/// into its other rows.
void ShardTeam::sum_rows() {
  for (std::size_t i = 0; i < rows_.size(); ++i) sums_[i].assign(rows_[i].begin(), rows_[i].end());
  pairs_all_reduce(ranks_, sums_, shards_);
  for (const Row& row : rows_) std::ranges::copy(sums_[0], row.begin());
}

/// The elements of x that a rank's shards have.
static Range chunks_of(std::size_t n, std::size_t shards, std::size_t ranks, std::size_t rank) {
  const Range own = range_of(shards, ranks, rank);
  return {range_of(n, shards, own.begin).begin, range_of(n, shards, own.end - 1).end};
}

/// Each rank sends its shards' chunks to all others.
void ShardTeam::gather_rows() {
  const std::size_t n = rows_[0].size();
  std::vector<std::size_t> lengths;
  for (std::size_t r = 0; r < ranks_.size; ++r)
    lengths.push_back(chunks_of(n, shards_, ranks_.size, r).size());
  std::vector<float> own, to_each, all(n);
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const Row chunk = chunk_of(rows_[i], shards_, own_.begin + i);
    own.insert(own.end(), chunk.begin(), chunk.end());
  }
  for (std::size_t r = 0; r < ranks_.size; ++r)
    to_each.insert(to_each.end(), own.begin(), own.end());
  all_to_all(ranks_, to_each, std::vector(ranks_.size, own.size()), all, lengths);
  for (const Row& row : rows_) std::ranges::copy(all, row.begin());
}

Sent team_sum_cost(std::size_t n, std::size_t shards, std::size_t ranks, std::size_t rank) {
  return pairs_all_reduce_cost(n, shards, ranks, rank);
}
Sent team_gather_cost(std::size_t n, std::size_t shards, std::size_t ranks, std::size_t rank) {
  const std::size_t own = chunks_of(n, shards, ranks, rank).size();
  return {ranks - 1, (ranks - 1) * own * sizeof(float)};
}

}  // namespace t2t
