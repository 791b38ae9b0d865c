// Training on a grid of ranks.
//
//   this rank's micro-batches through the stages, with sums over tensor ranks in each block, and
//   with rows to experts and back
//   → the gradients, summed over replicas in fixed pairs of micro-batches, those of experts over
//   data ranks
//   → a tied table's two gradients, summed between the first stage and the last
//   → the loss, from the last stages, and the norm, over the ranks of a model → AdamW on this
//   rank's shards
//
// The replicas of a model's shard begin with equal weights and take equal steps. On any number of
// data ranks, expert ranks and stages, losses and weights have the same bits, as no sum's order
// changes. An expert's rank receives the rows of all micro-batches that its line computes at a
// time, and its gradient is a sum of as many rows as that of everything else: the line's ranks must
// not add it up, and nothing is divided by their number, as each token's loss is divided by the
// tokens of the whole step. Tensor ranks add terms in an order that depends on their number, unless
// the number of shards is given: then those are divided among the tensor ranks
// (same_bits/shard_team.hpp), and losses and weights have the same bits on every grid.
#pragma once

#include <filesystem>
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
  /// do, and std::invalid_argument for a balance of a model without experts.
  GridTrainer(const RankGrid& grid, const Config& whole, const ModelWeights& weights,
              const TrainingOptions& options, std::span<const int> ids, std::size_t shards = 0,
              const GridBalance& balance = {});

  /// One step, as Trainer's, with the same loss and norm on each rank; the loss contains those that
  /// balance experts, and the update_ratio is that of the rank's first shard. All ranks must call
  /// it. Throws as norm_of_shards does, on all ranks at once, and as messages.hpp says.
  StepReport step();

  /// The rank's shards, one without a number of shards.
  const std::vector<std::unique_ptr<GridShard>>& shards() const { return shards_; }
  /// What this rank sent in the last step.
  const GridSent& sent_in_step() const { return sent_; }
  /// Rows that went to other ranks' experts or came from other ranks in the last step, in the
  /// forward passes.
  std::size_t rows_exchanged() const;
  HeldBytes held_bytes() const;

  /// Writes a checkpoint, and goes on from one that any grid, or a pipeline of chapter 21, has
  /// written of the same model. All ranks must call them; they throw as part_files.hpp says. The
  /// options and the ids must be those of the run that was saved.
  void save(const std::filesystem::path& folder);
  void resume(const std::filesystem::path& folder);
  std::size_t steps_done() const { return shards_[0]->steps_done(); }

  std::size_t kept_bytes() const;

 private:
  void run_shards(std::vector<double>& losses);
  void run_shard(std::size_t i, std::vector<double>& losses);
  void write_balance(const GridExperts& experts, std::size_t own_part,
                     std::span<double> losses) const;
  void sum_gradients();
  void count_experts();
  PartState state(bool to_write);
  std::vector<ListedTensor> counted() const;

  const RankGrid& grid_;
  Config whole_;
  TrainingOptions options_;
  GridBalance balance_;
  std::optional<ShardTeam> team_;
  std::vector<std::unique_ptr<GridShard>> shards_;
  std::vector<ListedTensor> counted_;  // in the norm, of all shards
  GridSent sent_;
};

}  // namespace t2t
