#include "22_grid/training/grid_costs.hpp"

#include "19_ranks/counting/costs.hpp"
#include "19_ranks/sharded/sharded_step.hpp"
#include "20_split_models/expert_parallel/exchange_costs.hpp"
#include "20_split_models/expert_parallel/expert_ranges.hpp"
#include "20_split_models/tensor_parallel/split_loss.hpp"
#include "21_pipeline/stages/pipeline_costs.hpp"
#include "22_grid/experts/mixture_shard.hpp"
#include "22_grid/same_bits/shard_team.hpp"
#include "22_grid/training/grid_shard.hpp"

namespace t2t {

/// What a rank has of the model and of the batch.
struct OwnPart {
  StagePlace stage;
  Range shards;  // of `all`
  std::size_t all;
  ExpertPlace experts;
  std::size_t parts;          // micro-batches
  std::size_t parts_of_line;  // of all ranks of its line of expert ranks
  std::size_t replica, replicas;
};
static OwnPart part_of(const GridShape& shape, const GridPlace& place,
                       const TrainingOptions& options, std::size_t shards) {
  const std::size_t all = shards > 0 ? shards : shape.tensor;
  const std::size_t replica = place.data * shape.experts + place.expert,
                    replicas = shape.data * shape.experts;
  return {{place.stage, shape.stages},
          range_of(all, shape.tensor, place.tensor),
          all,
          {place.expert, shape.experts},
          range_of(options.parts, replicas, replica).size(),
          range_of(options.parts, shape.data, place.data).size(),
          replica,
          replicas};
}

/// How many elements a shard of a stage learns: of experts, and of everything else.
struct Elements {
  std::size_t experts = 0, others = 0;
  std::size_t all() const { return experts + others; }
};
static Elements elements_of(const Config& whole, StagePlace stage, Shard shard, ExpertPlace place) {
  const Range blocks = blocks_of(whole, stage);
  ModelWeights none = room_for(whole);
  Elements elements;
  for_each_tensor(none, whole, [&](const TensorInfo& info, const auto&) {
    if (info.size() == 0 || !is_at(info, whole, place)) return;
    const Piece piece = grid_piece_of(info, whole, shard);
    const bool is_table = info.name == "embedding";
    const bool is_at_first = is_table || info.role == Role::positions;
    const bool is_on_stage = info.layer ? *info.layer >= blocks.begin && *info.layer < blocks.end
                                        : (is_at_first ? stage.is_first() : stage.is_last());
    const std::size_t copies = is_on_stage + (is_table && whole.tied && stage.is_last() ? 1 : 0);
    if (!piece.zeros) (info.expert ? elements.experts : elements.others) += copies * piece.size();
  });
  return elements;
}

static Sent times(std::size_t n, const Sent& sent) { return {n * sent.messages, n * sent.bytes}; }

/// A sum of n floats over the tensor ranks.
static Sent sum_cost(std::size_t n, const GridShape& shape, const GridPlace& place,
                     std::size_t shards) {
  return shards > 0 ? team_sum_cost(n, shards, shape.tensor, place.tensor)
                    : ring_all_reduce_cost(n, shape.tensor, place.tensor);
}

/// Of one micro-batch.
static Sent tensor_cost(const Config& whole, const GridShape& shape, const GridPlace& place,
                        std::size_t tokens, std::size_t shards) {
  const StagePlace stage = {place.stage, shape.stages};
  const std::size_t T = shape.tensor, t = place.tensor, blocks = blocks_of(whole, stage).size();
  const std::size_t sums = 4 * blocks + (stage.is_first() ? 1 : 0) + (stage.is_last() ? 1 : 0);
  const Sent loss = shards > 0 ? team_gather_cost(shards * tokens, shards, T, t) +
                                     team_gather_cost(2 * shards * tokens, shards, T, t)
                               : split_cross_entropy_cost(tokens, T, t);
  const std::size_t k = settings_of(whole, 0).chosen;
  const Sent of_choices = k > 0 ? sum_cost(tokens * k, shape, place, shards) : Sent{};
  return times(sums, sum_cost(tokens * whole.block.C, shape, place, shards)) +
         times(blocks, of_choices) + (stage.is_last() ? loss : Sent{});
}

/// Of a shard with its own micro-batches: for a block and micro-batch, the counts and rows in four
/// exchanges.
static Sent experts_cost(const Config& whole, const OwnPart& own, std::size_t rows) {
  const std::size_t E = settings_of(whole, 0).experts, p = own.experts.ranks;
  if (E == 0) return {};
  const std::size_t calls = own.shards.size() * blocks_of(whole, own.stage).size() * own.parts;
  const Sent counts = counts_cost(E, p, own.experts.rank);
  return times(calls, counts + Sent{4 * (p - 1), 0}) +
         Sent{0, 2 * rows * whole.block.C * sizeof(float)};
}

/// The losses of all micro-batches, the norm's two rounds, and the counts of choices; a value is
/// two floats.
static Sent values_cost(const Config& whole, const GridShape& shape, const GridPlace& place,
                        const OwnPart& own, std::size_t parts, const GridBalance& balance) {
  const std::size_t of_stage = shape.experts * shape.tensor, model = shape.stages * of_stage,
                    rank = place.stage * of_stage + place.expert * shape.tensor + place.tensor;
  const std::size_t losses = parts * (1 + (balance.has_losses() ? whole.L : 0));
  const std::size_t counts = blocks_of(whole, own.stage).size() * settings_of(whole, 0).experts;
  const Sent of_counts = tree_all_reduce_cost(2 * counts, own.replicas, own.replica);
  return tree_all_reduce_cost(2 * losses, shape.ranks(), rank_at(shape, place)) +
         tree_all_reduce_cost(2 * norm_values_first * model, model, rank) +
         tree_all_reduce_cost(2 * norm_values_second * model, model, rank) +
         (balance.waits_for_counts() ? times(own.shards.size(), of_counts) : Sent{});
}

GridSent grid_step_cost(const Config& whole, const GridShape& shape, const GridPlace& place,
                        const TrainingOptions& options, std::size_t shards,
                        const GridBalance& balance, std::size_t rows) {
  const OwnPart own = part_of(shape, place, options, shards);
  const std::size_t tokens = options.B * options.T;
  GridSent sent = {.tensor = times(own.parts, tensor_cost(whole, shape, place, tokens, shards)),
                   .experts = experts_cost(whole, own, rows),
                   .values = values_cost(whole, shape, place, own, options.parts, balance)};
  for (std::size_t i = own.shards.begin; i < own.shards.end; ++i) {
    const Shard shard = {i, own.all};
    const Config config = grid_config_of(whole, shard, own.experts);
    const Elements elements = elements_of(whole, own.stage, shard, own.experts);
    sent.stages +=
        neighbours_cost(config, own.stage, tokens, own.parts) + table_cost(config, own.stage);
    sent.data += pairs_all_reduce_cost(elements.others, options.parts, own.replicas, own.replica);
    if (elements.experts > 0)
      sent.data += pairs_all_reduce_cost(elements.experts, options.parts, shape.data, place.data);
  }
  return sent;
}

/// What a stage saves; F of experts is not part of it.
static std::size_t kept_without_experts(Config config, StagePlace stage, std::size_t tokens,
                                        std::size_t in_flight) {
  const auto change = [](BlockSettings& block) {
    if (block.experts > 0) block.F = 0;
  };
  change(config.block);
  for (BlockSettings& block : config.layers) change(block);
  return kept_cost(config, stage, tokens, in_flight);
}

GridMemory grid_memory(const Config& whole, const GridShape& shape, const GridPlace& place,
                       const TrainingOptions& options, std::size_t shards,
                       const GridBalance& balance) {
  const OwnPart own = part_of(shape, place, options, shards);
  GridMemory memory = {};
  for (std::size_t i = own.shards.begin; i < own.shards.end; ++i) {
    const Shard shard = {i, own.all};
    const Elements elements = elements_of(whole, own.stage, shard, own.experts);
    memory.held.weights += elements.all() * sizeof(float);
    memory.held.optimizer += 2 * elements.all() * sizeof(float);
    memory.held.gradients +=
        ((own.parts + 1) * elements.others + (own.parts_of_line + 1) * elements.experts) *
        sizeof(float);
    memory.kept +=
        kept_without_experts(grid_config_of(whole, shard, own.experts), own.stage,
                             options.B * options.T, slots_at(shape, place, balance, own.parts));
  }
  return memory;
}

}  // namespace t2t
