#include "22_grid/training/grid_shard.hpp"

#include <algorithm>

#include "19_ranks/data_parallel/data_trainer.hpp"
#include "19_ranks/sharded/sharded_step.hpp"
#include "20_split_models/tensor_parallel/split_gradients.hpp"
#include "random.hpp"

namespace t2t {

static constexpr PipelineSchedule schedule = PipelineSchedule::one_f_one_b;

/// The stage of a shard's own model: chapter 21's, with chapter 20's sums, embedding and loss.
static StageFunctions functions_of(const ShardGroup& group, std::size_t V,
                                   SplitEmbedding& embedding) {
  const auto embed = [&embedding](Passes& passes, const Model& own, const Batch& batch,
                                  const Dropout& dropout) {
    embedding.embed(passes, own, batch, dropout);
  };
  const auto backward = [&embedding](Passes& passes, const Batch& batch, ModelWeights& gradients,
                                     const Dropout& dropout) {
    embedding.backward(passes, batch, gradients, dropout);
  };
  return {split_functions(group, V), embed, backward};
}

static StageSizes sizes_of(const RankGrid& grid, const TrainingOptions& options,
                           std::size_t parts) {
  return {options.B, options.T, parts,
          most_in_flight(schedule, grid.shape().stages, grid.place().stage, parts)};
}

GridShard::GridShard(const RankGrid& grid, const ShardGroup& group, const Config& whole,
                     const ModelWeights& weights, const TrainingOptions& options,
                     std::span<const int> ids)
    : whole_(whole),
      shard_{group.rank, group.size},
      options_(options),
      parts_(own_parts(grid.data(), options.parts)),
      operations_(operations_of(schedule, grid.shape().stages, grid.place().stage, parts_.size())),
      windows_(ids, options.T, options.seed),
      batch_(make_batch(options.B, options.T)),
      embedding_(group, whole, options.B, options.T),
      stage_(grid.stages(), trained_config_of(whole, shard_),
             trained_shard_of(weights, whole, shard_), sizes_of(grid, options, parts_.size()),
             functions_of(group, whole.V, embedding_)),
      part_gradients_(learned(stage_.gradients())),
      sums_(parts_.size(), std::vector<float>(elements_of(part_gradients_))),
      gradients_(listed_in(sums_[0], part_gradients_)),
      optimizer_({options.schedule, options.adamw, 0}, learned(stage_.weights()), gradients_) {}

/// Without biases and positions that another shard adds, which are zeros here and must stay so.
std::vector<ListedTensor> GridShard::learned(std::vector<ListedTensor> tensors) const {
  std::erase_if(tensors, [&](const ListedTensor& tensor) {
    return piece_of(tensor.info, whole_, shard_).zeros;
  });
  return tensors;
}

double GridShard::run(const Operation& operation) {
  const auto [pass, part] = operation;
  const std::uint64_t number =
      std::uint64_t(steps_done()) * options_.parts + parts_.begin + part;  // of all steps
  const Dropout dropout = {options_.dropout, seed_of(SeedOf::step, options_.seed, number)};
  if (pass == Operation::Pass::forward) {
    windows_.fill(batch_, number * options_.B);
    const float scale = 1 / float(options_.parts * options_.B * options_.T);
    return stage_.forward(part, batch_, scale, dropout);
  }
  stage_.backward(part, dropout);
  auto to = sums_[part].begin();
  for (const ListedTensor& tensor : part_gradients_) to = std::ranges::copy(tensor.numbers, to).out;
  for (const ListedTensor& tensor : stage_.gradients()) std::ranges::fill(tensor.numbers, 0.0f);
  return 0;
}

/// What every shard has whole, such as a norm's gain, shard 0 counts.
std::vector<ListedTensor> GridShard::counted() const {
  std::vector<ListedTensor> list = counted_once(gradients_, whole_);
  for (auto& [info, numbers] : list)
    if (shard_.rank > 0 && numbers.size() == info.size()) numbers = Row();
  return list;
}

StepReport GridShard::clipped_step(double norm, double loss) {
  return t2t::clipped_step(optimizer_, gradients_, norm, options_.clip, loss);
}

HeldBytes GridShard::held_bytes() {
  const std::size_t own = bytes_of(part_gradients_);
  return {bytes_of(optimizer_.weights()), own + sums_.size() * sums_[0].size() * sizeof(float),
          bytes_of(optimizer_.means()) + bytes_of(optimizer_.squares())};
}

}  // namespace t2t
