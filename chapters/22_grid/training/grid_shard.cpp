#include "22_grid/training/grid_shard.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "19_ranks/data_parallel/data_trainer.hpp"
#include "19_ranks/sharded/sharded_step.hpp"
#include "20_split_models/tensor_parallel/split_gradients.hpp"
#include "random.hpp"
#include "shapes.hpp"

namespace t2t {

static ExpertPlace expert_place(const RankGrid& grid) {
  return {grid.place().expert, grid.shape().experts};
}

static PipelineSchedule schedule_of(const GridBalance& balance) {
  return balance.waits_for_counts() ? PipelineSchedule::gpipe : PipelineSchedule::one_f_one_b;
}

std::size_t slots_at(const GridShape& shape, const GridPlace& place, const GridBalance& balance,
                     std::size_t own_parts) {
  return most_in_flight(schedule_of(balance), shape.stages, place.stage, own_parts);
}

/// The micro-batches of this rank. On a line of expert ranks, each exchange needs all of them.
static Range parts_at(const RankGrid& grid, std::size_t parts) {
  const std::size_t replicas = grid.replicas().size;
  if (grid.shape().experts > 1)
    expect(parts % replicas == 0, "parts of a batch",
           fmt::format("a multiple of {}, data ranks times expert ranks", replicas), parts);
  return own_parts(grid.replicas(), parts);
}

/// The stage of a shard's own model: chapter 21's, with chapter 20's sums, embedding and loss, and
/// with mixtures, if there are any.
static StageFunctions functions_of(const ShardGroup& group, std::size_t V,
                                   SplitEmbedding& embedding, GridExperts* experts) {
  StageFunctions functions = {split_functions(group, V)};
  functions.embed = [&embedding](Passes& passes, const Model& own, const Batch& batch,
                                 const Dropout& dropout) {
    embedding.embed(passes, own, batch, dropout);
  };
  functions.embedding_backward = [&embedding](Passes& passes, const Batch& batch,
                                              ModelWeights& gradients, const Dropout& dropout) {
    embedding.backward(passes, batch, gradients, dropout);
  };
  if (experts) functions.training.network = experts->network();
  return functions;
}

/// The mixtures of the stage's blocks; null for a model without experts.
std::unique_ptr<GridExperts> GridShard::make_experts(const ShardGroup& group,
                                                     const GridBalance& balance) {
  const auto& [shape, place] = std::pair(grid_.shape(), grid_.place());
  const std::size_t E = settings_of(whole_, 0).experts;
  if (E == 0) return nullptr;
  const MixtureSizes sizes = {blocks_of(whole_, {place.stage, shape.stages}), E,
                              slots_at(shape, place, balance, parts_.size()), parts_.size(),
                              options_.parts};
  return std::make_unique<GridExperts>(
      grid_.experts(), group, sizes, balance,
      [this](std::size_t layer, std::size_t sender, std::size_t part) {
        move_expert_gradients(layer, sender, part);
      });
}

/// The functions of a stage that has some of the experts.
static StageFunctions with_own_experts(StageFunctions functions, const Config& whole,
                                       ExpertPlace place) {
  functions.is_here = [whole, place](const TensorInfo& info) { return is_at(info, whole, place); };
  return functions;
}

GridShard::GridShard(const RankGrid& grid, const ShardGroup& group, const Config& whole,
                     const ModelWeights& weights, const TrainingOptions& options,
                     std::span<const int> ids, const GridBalance& balance)
    : grid_(grid),
      whole_(whole),
      shard_{group.rank, group.size},
      options_(options),
      parts_(parts_at(grid, options.parts)),
      operations_(operations_of(schedule_of(balance), grid.shape().stages, grid.place().stage,
                                parts_.size())),
      shares_counts_(balance.waits_for_counts()),
      windows_(ids, options.T, options.seed),
      batch_(make_batch(options.B, options.T)),
      embedding_(group, whole, options.B, options.T),
      experts_(make_experts(group, balance)),
      stage_(grid.stages(), grid_config_of(whole, shard_, expert_place(grid)),
             grid_shard_of(weights, whole, shard_, expert_place(grid)),
             {options.B, options.T, parts_.size(),
              slots_at(grid.shape(), grid.place(), balance, parts_.size())},
             with_own_experts(functions_of(group, whole.V, embedding_, experts_.get()), whole,
                              expert_place(grid))),
      part_gradients_(learned(stage_.gradients(), false)),
      expert_gradients_(learned(stage_.gradients(), true)),
      sums_(parts_.size(), std::vector<float>(elements_of(part_gradients_))),
      expert_sums_(experts_ ? parts_.size() * grid.shape().experts : 0,
                   std::vector<float>(elements_of(expert_gradients_))),
      gradients_(in_first_rows()),
      optimizer_({options.schedule, options.adamw, 0}, learned(stage_.weights()), gradients_) {}

/// Without biases and positions that another shard adds, which are zeros here and must stay so.
std::vector<ListedTensor> GridShard::learned(std::vector<ListedTensor> tensors) const {
  std::erase_if(tensors, [&](const ListedTensor& tensor) {
    return grid_piece_of(tensor.info, whole_, shard_).zeros;
  });
  return tensors;
}
/// Those of experts alone, or all others.
std::vector<ListedTensor> GridShard::learned(std::vector<ListedTensor> tensors,
                                             bool of_experts) const {
  std::erase_if(tensors, [&](const ListedTensor& tensor) {
    return tensor.info.expert.has_value() != of_experts;
  });
  return learned(std::move(tensors));
}

/// All gradients, in the order of the weights, as they lie in the first rows.
std::vector<ListedTensor> GridShard::in_first_rows() {
  std::vector<ListedTensor> list = learned(stage_.gradients());
  const std::vector<ListedTensor> shared = listed_in(sums_[0], part_gradients_);
  const std::vector<ListedTensor> of_experts =
      experts_ ? listed_in(expert_sums_[0], expert_gradients_) : expert_gradients_;
  auto next_shared = shared.begin(), next_of_experts = of_experts.begin();
  for (ListedTensor& tensor : list)
    tensor.numbers = (tensor.info.expert ? next_of_experts++ : next_shared++)->numbers;
  return list;
}

/// A layer's experts have added the gradients of one sender's rows: a micro-batch's of that rank.
void GridShard::move_expert_gradients(std::size_t layer, std::size_t sender, std::size_t part) {
  auto to = expert_sums_[sender * parts_.size() + part].begin();
  for (const auto& [info, numbers] : expert_gradients_) {
    if (*info.layer == layer) {
      std::ranges::copy(numbers, to);
      std::ranges::fill(numbers, 0.0f);
    }
    to += std::ptrdiff_t(numbers.size());
  }
}

/// Of the head and the norm before it.
static bool is_of_head(const TensorInfo& info) {
  return info.name == "head" || info.name.starts_with("final_norm");
}

/// Moves what a pass has added for a micro-batch into its row: a forward pass the head's gradients,
/// since other forward passes may come before the backward pass, which adds all others.
void GridShard::move_gradients(Operation::Pass pass, std::size_t part) {
  auto to = sums_[part].begin();
  for (const auto& [info, numbers] : part_gradients_) {
    if (is_of_head(info) == (pass == Operation::Pass::forward)) {
      std::ranges::copy(numbers, to);
      std::ranges::fill(numbers, 0.0f);
    }
    to += std::ptrdiff_t(numbers.size());
  }
}

void GridShard::begin_step() {
  if (experts_) experts_->begin_step();
}

double GridShard::run(const Operation& operation) {
  const auto [pass, part] = operation;
  const std::uint64_t number =
      std::uint64_t(steps_done()) * options_.parts + parts_.begin + part;  // of all steps
  const Dropout dropout = {options_.dropout, seed_of(SeedOf::step, options_.seed, number)};
  if (experts_) experts_->begin(part);
  if (pass == Operation::Pass::forward) {
    windows_.fill(batch_, number * options_.B);
    const float scale = 1 / float(options_.parts * options_.B * options_.T);
    const double loss = stage_.forward(part, batch_, scale, dropout);
    move_gradients(pass, part);
    return loss;
  }
  if (experts_ && shares_counts_ && part == 0) experts_->share_counts(grid_.replicas());
  stage_.backward(part, dropout);
  move_gradients(pass, part);
  return 0;
}

/// What every shard has whole, such as a norm's gain, shard 0 counts; what every expert rank has,
/// the first of them.
std::vector<ListedTensor> GridShard::counted() const {
  std::vector<ListedTensor> list = counted_once(gradients_, whole_);
  for (auto& [info, numbers] : list) {
    const bool is_whole = numbers.size() == info.size();
    if ((shard_.rank > 0 && is_whole) || (grid_.place().expert > 0 && !info.expert))
      numbers = Row();
  }
  return list;
}

StepReport GridShard::clipped_step(double norm, double loss) {
  return t2t::clipped_step(optimizer_, gradients_, norm, options_.clip, loss);
}

/// The replicas of everything but experts take turns by the tensor's number; an expert's are the
/// data ranks.
bool GridShard::is_written_here(const TensorInfo& info, std::size_t number) const {
  const Communicator& copies = info.expert ? grid_.data() : grid_.replicas();
  return number % copies.size == copies.rank;
}

void GridShard::append_state(PartState& state, bool to_write) {
  const std::vector<TensorInfo> all = tensors_in_parts(whole_);
  for (std::size_t i = 0; i < optimizer_.weights().size(); ++i) {
    const TensorInfo& own = optimizer_.weights()[i].info;
    const auto found = std::ranges::find(all, full_name(own),
                                         [](const TensorInfo& info) { return full_name(info); });
    const std::size_t number = std::size_t(found - all.begin());
    if (to_write && !is_written_here(own, number)) continue;
    const Piece piece = grid_piece_of(all.at(number), whole_, shard_);
    state.parts.push_back({number, piece.rows, piece.cols});
    state.elements[0].push_back(optimizer_.weights()[i]);
    state.elements[1].push_back(optimizer_.means()[i]);
    state.elements[2].push_back(optimizer_.squares()[i]);
  }
}

HeldBytes GridShard::held_bytes() {
  const auto bytes_of_rows = [](const std::vector<std::vector<float>>& rows) {
    return rows.empty() ? 0 : rows.size() * rows[0].size() * sizeof(float);
  };
  const std::size_t own = bytes_of(part_gradients_) + bytes_of(expert_gradients_);
  return {bytes_of(optimizer_.weights()), own + bytes_of_rows(sums_) + bytes_of_rows(expert_sums_),
          bytes_of(optimizer_.means()) + bytes_of(optimizer_.squares())};
}

}  // namespace t2t
