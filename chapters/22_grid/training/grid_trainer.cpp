#include "22_grid/training/grid_trainer.hpp"

#include <numeric>
#include <stdexcept>

#include "19_ranks/collectives/pairs.hpp"
#include "19_ranks/data_parallel/data_trainer.hpp"
#include "19_ranks/sharded/sharded_step.hpp"
#include "21_pipeline/stages/pipeline_trainer.hpp"
#include "21_pipeline/stages/stage_tensors.hpp"

namespace t2t {

/// What this rank has sent up to a moment. Messages between stages count as `other`.
struct Counted {
  Sent all = sent(), other = sent(Purpose::other);
};

GridTrainer::GridTrainer(const RankGrid& grid, const Config& whole, const ModelWeights& weights,
                         const TrainingOptions& options, std::span<const int> ids,
                         std::size_t shards, const GridBalance& balance)
    : grid_(grid), whole_(whole), options_(options), balance_(balance) {
  if (balance.has_losses() && settings_of(whole, 0).experts == 0)
    throw std::invalid_argument("balance: wanted no losses for a model without experts");
  if (shards > 0) team_.emplace(grid.tensor(), shards);
  const std::size_t own = team_ ? team_->own().size() : 1;
  for (std::size_t i = 0; i < own; ++i)
    shards_.push_back(
        std::make_unique<GridShard>(grid, team_ ? team_->group(i) : ShardGroup(grid.tensor()),
                                    whole, weights, options, ids, balance));
  counted_ = counted();
}

/// One list for each shard of all tensor ranks, one after the other; those of other ranks' shards
/// are empty.
std::vector<ListedTensor> GridTrainer::counted() const {
  const std::size_t all = team_ ? team_->shards() : grid_.shape().tensor,
                    first = team_ ? team_->own().begin : grid_.place().tensor;
  std::vector<ListedTensor> list;
  for (std::size_t shard = 0; shard < all; ++shard) {
    const bool is_own = shard >= first && shard < first + shards_.size();
    for (ListedTensor tensor : shards_[is_own ? shard - first : 0]->counted()) {
      if (!is_own) tensor.numbers = Row();
      list.push_back(tensor);
    }
  }
  return list;
}

/// One shard of the last stage writes the losses of this rank's micro-batches; what balances
/// experts follows them, as sums over tokens, for each micro-batch and layer.
void GridTrainer::run_shard(std::size_t i, std::vector<double>& losses) {
  GridShard& shard = *shards_[i];
  shard.begin_step();
  for (const Operation& operation : shard.operations()) {
    // All own shards send a micro-batch on before any of them waits for the next one.
    if (team_) team_->meet(i);
    const double loss = shard.run(operation);
    if (i > 0 || grid_.place().tensor > 0) continue;
    const std::size_t part = shard.parts().begin + operation.part;
    if (operation.pass == Operation::Pass::forward)
      losses[part] = loss;
    else if (balance_.has_losses())
      write_balance(*shard.experts(), operation.part,
                    {&losses[options_.parts + part * whole_.L], whole_.L});
  }
  shard.finish();
}

/// Of the stage's layers.
void GridTrainer::write_balance(const GridExperts& experts, std::size_t own_part,
                                std::span<double> losses) const {
  const Range layers = blocks_of(whole_, {grid_.place().stage, grid_.shape().stages});
  for (std::size_t l = layers.begin; l < layers.end; ++l)
    losses[l] =
        experts.loss(l - layers.begin, own_part) * double(options_.parts * options_.B * options_.T);
}

void GridTrainer::run_shards(std::vector<double>& losses) {
  if (team_)
    team_->run([&](std::size_t i) { run_shard(i, losses); });
  else
    run_shard(0, losses);
}

void GridTrainer::sum_gradients() {
  for (const auto& shard : shards_) {
    pairs_all_reduce(grid_.replicas(), shard->sums(), options_.parts);
    if (shard->experts()) pairs_all_reduce(grid_.data(), shard->expert_sums(), options_.parts);
  }
}

StepReport GridTrainer::step() {
  std::vector<double> losses(options_.parts * (1 + (balance_.has_losses() ? whole_.L : 0)));
  const Counted begin;
  run_shards(losses);
  const Counted passed;
  sum_gradients();
  const Counted summed;
  for (const auto& shard : shards_)
    if (whole_.tied) join_tied_tables(grid_.stages(), shard->gradients());
  const Counted joined;

  const double loss = mean_loss(grid_.world(), losses, options_);
  const double norm = norm_of_shards(grid_.model(), counted_, shards_[0]->steps_done() + 1, loss);
  std::vector<StepReport> reports;
  for (const auto& shard : shards_) reports.push_back(shard->clipped_step(norm, loss));
  sent_ = {.tensor = (passed.all - begin.all) - (passed.other - begin.other),
           .stages = (passed.other - begin.other) + (joined.all - summed.all),
           .data = summed.all - passed.all,
           .experts = {},
           .values = Counted().all - joined.all};
  count_experts();
  return reports[0];
}

/// What has been sent for experts in the passes is not the tensor direction's.
void GridTrainer::count_experts() {
  for (const auto& shard : shards_) {
    if (!shard->experts()) continue;
    sent_.experts += shard->experts()->sent_to_experts();
    sent_.values += shard->experts()->sent_counts();
    sent_.tensor =
        sent_.tensor - shard->experts()->sent_to_experts() - shard->experts()->sent_counts();
  }
}

std::size_t GridTrainer::rows_exchanged() const {
  std::size_t rows = 0;
  for (const auto& shard : shards_)
    if (shard->experts()) rows += shard->experts()->rows_exchanged();
  return rows;
}

PartState GridTrainer::state(bool to_write) {
  PartState state;
  for (const auto& shard : shards_) shard->append_state(state, to_write);
  return state;
}

void GridTrainer::save(const std::filesystem::path& folder) {
  save_parts(grid_.world(), folder, steps_done(), state(true));
}

void GridTrainer::resume(const std::filesystem::path& folder) {
  const std::size_t step = load_parts(grid_.world(), folder, state(false));
  for (const auto& shard : shards_) shard->continue_from(step);
}

HeldBytes GridTrainer::held_bytes() const {
  HeldBytes sum = {0, 0, 0};
  for (const auto& shard : shards_) {
    const HeldBytes own = shard->held_bytes();
    sum.weights += own.weights, sum.gradients += own.gradients, sum.optimizer += own.optimizer;
  }
  return sum;
}

std::size_t GridTrainer::kept_bytes() const {
  return std::accumulate(
      shards_.begin(), shards_.end(), std::size_t(0),
      [](std::size_t sum, const auto& shard) { return sum + shard->kept_bytes(); });
}

}  // namespace t2t
