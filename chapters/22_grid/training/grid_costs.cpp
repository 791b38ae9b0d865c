#include "22_grid/training/grid_costs.hpp"

#include "19_ranks/counting/costs.hpp"
#include "19_ranks/sharded/sharded_step.hpp"
#include "20_split_models/tensor_parallel/split_gradients.hpp"
#include "20_split_models/tensor_parallel/split_loss.hpp"
#include "21_pipeline/stages/pipeline_costs.hpp"
#include "22_grid/same_bits/shard_team.hpp"

namespace t2t {

/// What a rank has of the model and of the batch.
struct OwnPart {
  StagePlace stage;
  Range shards;  // of `all`
  std::size_t all;
  std::size_t parts;  // micro-batches
};
static OwnPart part_of(const GridShape& shape, const GridPlace& place,
                       const TrainingOptions& options, std::size_t shards) {
  const std::size_t all = shards > 0 ? shards : shape.tensor;
  return {{place.stage, shape.stages},
          range_of(all, shape.tensor, place.tensor),
          all,
          range_of(options.parts, shape.data, place.data).size()};
}

/// How many elements a shard of a stage learns.
static std::size_t elements_of(const Config& whole, StagePlace stage, Shard shard) {
  const Range blocks = blocks_of(whole, stage);
  ModelWeights none = room_for(whole);
  std::size_t elements = 0;
  for_each_tensor(none, whole, [&](const TensorInfo& info, const auto&) {
    if (info.size() == 0) return;
    const Piece piece = piece_of(info, whole, shard);
    const bool is_table = info.name == "embedding";
    const bool is_at_first = is_table || info.role == Role::positions;
    const bool is_on_stage = info.layer ? *info.layer >= blocks.begin && *info.layer < blocks.end
                                        : (is_at_first ? stage.is_first() : stage.is_last());
    const std::size_t copies = is_on_stage + (is_table && whole.tied && stage.is_last() ? 1 : 0);
    if (!piece.zeros) elements += copies * piece.size();
  });
  return elements;
}

static Sent times(std::size_t n, const Sent& sent) { return {n * sent.messages, n * sent.bytes}; }

/// Of one micro-batch.
static Sent tensor_cost(const Config& whole, const GridShape& shape, const GridPlace& place,
                        std::size_t tokens, std::size_t shards) {
  const StagePlace stage = {place.stage, shape.stages};
  const std::size_t T = shape.tensor, t = place.tensor, n = tokens * whole.block.C;
  const std::size_t sums =
      4 * blocks_of(whole, stage).size() + (stage.is_first() ? 1 : 0) + (stage.is_last() ? 1 : 0);
  const Sent sum = shards > 0 ? team_sum_cost(n, shards, T, t) : ring_all_reduce_cost(n, T, t);
  const Sent loss = shards > 0 ? team_gather_cost(shards * tokens, shards, T, t) +
                                     team_gather_cost(2 * shards * tokens, shards, T, t)
                               : split_cross_entropy_cost(tokens, T, t);
  return times(sums, sum) + (stage.is_last() ? loss : Sent{});
}

/// The losses of all micro-batches, and the norm's two rounds; a value is two floats.
static Sent values_cost(const GridShape& shape, const GridPlace& place, std::size_t parts) {
  const std::size_t model = shape.stages * shape.tensor,
                    rank = place.stage * shape.tensor + place.tensor;
  return tree_all_reduce_cost(2 * parts, shape.ranks(), rank_at(shape, place)) +
         tree_all_reduce_cost(2 * norm_values_first * model, model, rank) +
         tree_all_reduce_cost(2 * norm_values_second * model, model, rank);
}

GridSent grid_step_cost(const Config& whole, const GridShape& shape, const GridPlace& place,
                        const TrainingOptions& options, std::size_t shards) {
  const OwnPart own = part_of(shape, place, options, shards);
  const std::size_t tokens = options.B * options.T;
  GridSent sent = {.tensor = times(own.parts, tensor_cost(whole, shape, place, tokens, shards)),
                   .values = values_cost(shape, place, options.parts)};
  for (std::size_t shard = own.shards.begin; shard < own.shards.end; ++shard) {
    const Config config = trained_config_of(whole, {shard, own.all});
    sent.stages +=
        neighbours_cost(config, own.stage, tokens, own.parts) + table_cost(config, own.stage);
    sent.data += pairs_all_reduce_cost(elements_of(whole, own.stage, {shard, own.all}),
                                       options.parts, shape.data, place.data);
  }
  return sent;
}

GridMemory grid_memory(const Config& whole, const GridShape& shape, const GridPlace& place,
                       const TrainingOptions& options, std::size_t shards) {
  const OwnPart own = part_of(shape, place, options, shards);
  GridMemory memory = {};
  for (std::size_t shard = own.shards.begin; shard < own.shards.end; ++shard) {
    const std::size_t bytes = elements_of(whole, own.stage, {shard, own.all}) * sizeof(float);
    memory.held.weights += bytes, memory.held.gradients += (own.parts + 1) * bytes;
    memory.held.optimizer += 2 * bytes;
    memory.kept += kept_cost(
        trained_config_of(whole, {shard, own.all}), own.stage, options.B * options.T,
        most_in_flight(PipelineSchedule::one_f_one_b, shape.stages, place.stage, own.parts));
  }
  return memory;
}

}  // namespace t2t
