// Training on a grid of ranks.
//
//   this rank's micro-batches through the stages, with sums over tensor ranks in each block
//   → the gradients, summed over data ranks in fixed pairs of micro-batches
//   → a tied table's two gradients, summed between the first stage and the last
//   → the loss, from the last stages, and the norm, over the ranks of a model → AdamW on this
//   rank's shards
//
// The data ranks of a model's shard begin with equal weights and take equal steps. On any number of
// data ranks and stages, losses and weights have the same bits, as no sum's order changes. Tensor
// ranks add terms in an order that depends on their number, unless the number of shards is given:
// then those are divided among the tensor ranks (same_bits/shard_team.hpp), and losses and weights
// have the same bits on every grid.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "22_grid/grid.hpp"
#include "22_grid/same_bits/shard_team.hpp"
#include "22_grid/training/grid_costs.hpp"
#include "22_grid/training/grid_shard.hpp"

namespace t2t {

class GridTrainer {
 public:
  /// All ranks of the grid, which must outlive it, must make it with equal arguments. A step's
  /// batch is options.parts micro-batches of options.B windows. With 0 shards, each tensor rank has
  /// one, and sums over them are rings. The ids must outlive it. Throws as GridShard and ShardTeam
  /// do.
  GridTrainer(const RankGrid& grid, const Config& whole, const ModelWeights& weights,
              const TrainingOptions& options, std::span<const int> ids, std::size_t shards = 0);

  /// One step, as Trainer's, with the same loss and norm on each rank; the update_ratio is that of
  /// the rank's first shard. All ranks must call it. Throws as norm_of_shards does, on all ranks at
  /// once, and as messages.hpp says.
  StepReport step();

  /// The rank's shards, one without a number of shards.
  const std::vector<std::unique_ptr<GridShard>>& shards() const { return shards_; }
  /// What this rank sent in the last step.
  const GridSent& sent_in_step() const { return sent_; }
  HeldBytes held_bytes() const;
  std::size_t kept_bytes() const;

 private:
  void run_shards(std::vector<double>& losses);
  void run_shard(std::size_t i, std::vector<double>& losses);
  std::vector<ListedTensor> counted() const;

  const RankGrid& grid_;
  Config whole_;
  TrainingOptions options_;
  std::optional<ShardTeam> team_;
  std::vector<std::unique_ptr<GridShard>> shards_;
  std::vector<ListedTensor> counted_;  // in the norm, of all shards
  GridSent sent_;
};

}  // namespace t2t
