// Small models with eight key heads, and trainings that every grid of up to eight ranks repeats.
#pragma once

#include <fmt/format.h>

#include <numeric>
#include <utility>
#include <vector>

#include "19_ranks/data_parallel/data_trainer.hpp"
#include "19_ranks/on_ranks.hpp"
#include "19_ranks/tiny_training.hpp"
#include "20_split_models/tensor_parallel/shard_weights.hpp"
#include "20_split_models/tensor_parallel/split_gradients.hpp"
#include "22_grid/training/grid_trainer.hpp"
#include "support/first_difference.hpp"

namespace t2t::tiny_grid {

using tiny_training::Floats;
constexpr std::size_t T = 9, V = 53, few_steps = 2;

inline std::vector<int> tiny_ids() {
  std::vector<int> ids;
  for (int n = 0; n < 2000; ++n) ids.push_back((7 * n * n + 3 * n + n / 5) % int(V));
  return ids;
}
inline TrainingOptions options_of(std::size_t parts, float dropout = 0, std::size_t steps = 20) {
  TrainingOptions options{.B = 2, .T = T, .parts = parts, .dropout = dropout, .seed = 5};
  options.schedule = {.peak = 3e-3f, .floor = 3e-4f, .warmup = 2, .steps = steps};
  return options;
}

/// F and V divide unevenly among two to eight shards.
inline Config llama_config(bool tied) {
  Config config{.block = {.C = 24, .H = 8, .G = 8, .D = 4, .F = 41}, .L = 3, .V = V, .T_max = T};
  config.tied = tied;
  return config;
}
/// Two query heads read each key head.
inline Config grouped_config() {
  Config config = llama_config(true);
  config.block.H = 16;
  return config;
}
/// GPT-2's, with biases and learned positions.
inline Config gpt2_config() {
  return resized(preset("gpt2"), {.C = 24, .L = 3, .H = 8, .G = 8, .D = 4, .V = V, .T_max = T});
}
inline ModelWeights weights_of(const Config& config) {
  Random random(3);
  ModelWeights weights = draw_model(config, random);
  for (const ListedTensor& tensor : tensors_of(weights, config))
    if (tensor.info.role == Role::bias)
      for (float& x : tensor.numbers) x = 0.2f * random.next_uniform() - 0.1f;
  return weights;
}

inline void append(Floats& to, const std::vector<ListedTensor>& tensors) {
  for (const ListedTensor& tensor : tensors)
    to.insert(to.end(), tensor.numbers.begin(), tensor.numbers.end());
}
/// A double as three floats, which hold all of its bits.
inline void append_exactly(Floats& to, double x) {
  to.push_back(float(x));
  tiny_training::append(to, x - double(float(x)));
}

/// The shards of a place, of `shards` in all or of one for each tensor rank.
inline Range shards_of(const GridShape& shape, const GridPlace& place, std::size_t shards) {
  return range_of(shards > 0 ? shards : shape.tensor, shape.tensor, place.tensor);
}

/// A shard's learned tensors on a stage, of weights that it stores there.
template <class Call>
void for_each_learned(ModelWeights& own, const Config& config, Shard shard, StagePlace stage,
                      Call call) {
  for (const ListedTensor& tensor : stage_tensors(own, trained_config_of(config, shard), stage))
    if (!piece_of(tensor.info, config, shard).zeros) call(tensor);
}
/// Calls this for each tensor that the rank at this place learns, of a whole model's weights, or of
/// their gradients.
template <class Call>
void for_each_own(const ModelWeights& weights, const Config& whole, const GridShape& shape,
                  const GridPlace& place, std::size_t shards, Call call) {
  const Range own = shards_of(shape, place, shards);
  const StagePlace stage = {place.stage, shape.stages};
  for (std::size_t i = own.begin; i < own.end; ++i) {
    const Shard shard = {i, shards > 0 ? shards : shape.tensor};
    const Config config = trained_config_of(whole, shard);
    ModelWeights cut = stage_weights(trained_shard_of(weights, whole, shard), config, stage);
    for_each_learned(cut, whole, shard, stage, call);
  }
}
inline Floats own_of(const ModelWeights& weights, const Config& whole, const GridShape& shape,
                     const GridPlace& place, std::size_t shards = 0) {
  Floats found;
  for_each_own(weights, whole, shape, place, shards,
               [&](const ListedTensor& tensor) { append(found, {tensor}); });
  return found;
}

/// Of some steps on a grid: each rank's losses and norms, then what it learns.
inline OnRanks trained(const GridShape& shape, const Config& config, const TrainingOptions& options,
                       std::size_t shards = 0, std::size_t steps = few_steps, bool norms = true) {
  return on_ranks(shape.ranks(), [&](const Communicator& ranks) {
    const RankGrid grid(ranks, shape);
    const std::vector<int> ids = tiny_ids();
    GridTrainer trainer(grid, config, weights_of(config), options, ids, shards);
    Floats found;
    for (std::size_t n = 0; n < steps; ++n) {
      const StepReport report = trainer.step();
      append_exactly(found, report.loss);
      if (norms) append_exactly(found, report.gradient_norm);
    }
    for (const auto& shard : trainer.shards()) append(found, shard->weights());
    return found;
  });
}

/// What a grid of one rank found after so many values, as a whole model's weights; of a tied model
/// both copies of the table, which are equal.
inline ModelWeights weights_in(const Floats& found, std::size_t values, const Config& config) {
  ModelWeights weights = stage_weights(weights_of(config), config, {0, 1});
  auto from = found.begin() + std::ptrdiff_t(values);
  for (const ListedTensor& tensor : stage_tensors(weights, config, {0, 1})) {
    std::copy_n(from, tensor.numbers.size(), tensor.numbers.begin());
    from += std::ptrdiff_t(tensor.numbers.size());
  }
  return weights;
}

/// "" if each rank found what this says of its place.
template <class Want>
std::string first_wrong_place(const OnRanks& got, const GridShape& shape, Want want_at) {
  if (!got.error.empty()) return got.error;
  for (std::size_t r = 0; r < got.results.size(); ++r) {
    const Floats want = want_at(place_of(shape, r));
    if (got.results[r] != want)
      return fmt::format("rank {}: {}", r, first_difference(got.results[r], want));
  }
  return "";
}
/// "" if each rank of the grid has these values first, and then its part of these weights.
inline std::string first_wrong_rank(const OnRanks& got, const Floats& values,
                                    const ModelWeights& weights, const Config& config,
                                    const GridShape& shape) {
  return first_wrong_place(got, shape, [&](const GridPlace& place) {
    Floats want = values;
    const Floats own = own_of(weights, config, shape, place);
    want.insert(want.end(), own.begin(), own.end());
    return want;
  });
}

/// The floats of ranks as one rank would have them: the first values once, then all shards.
inline Floats joined(const OnRanks& got, std::size_t values) {
  Floats all(got.results[0].begin(), got.results[0].begin() + std::ptrdiff_t(values));
  for (const Floats& of_rank : got.results)
    all.insert(all.end(), of_rank.begin() + std::ptrdiff_t(values), of_rank.end());
  return all;
}
/// The weights of all shards, of what one rank that has all of them found after so many values.
inline std::vector<ModelWeights> shards_in(const Floats& found, std::size_t values,
                                           const Config& config, std::size_t shards) {
  const ModelWeights whole = weights_of(config);
  std::vector<ModelWeights> all;
  auto from = found.begin() + std::ptrdiff_t(values);
  for (std::size_t i = 0; i < shards; ++i) {
    const Shard shard = {i, shards};
    all.push_back(stage_weights(trained_shard_of(whole, config, shard),
                                trained_config_of(config, shard), {0, 1}));
    for_each_learned(all.back(), config, shard, {0, 1}, [&](const ListedTensor& tensor) {
      std::copy_n(from, tensor.numbers.size(), tensor.numbers.begin());
      from += std::ptrdiff_t(tensor.numbers.size());
    });
  }
  return all;
}
/// "" if each rank has the first values of what one rank found that has all of so many shards, and
/// after them its part of what the shards learned.
inline std::string first_unlike(const OnRanks& got, const GridShape& shape, const Floats& alone,
                                std::size_t values, const Config& config, std::size_t shards) {
  const std::vector<ModelWeights> all = shards_in(alone, values, config, shards);
  return first_wrong_place(got, shape, [&](const GridPlace& place) {
    Floats want(alone.begin(), alone.begin() + std::ptrdiff_t(values));
    const Range own = range_of(shards, shape.tensor, place.tensor);
    const StagePlace stage = {place.stage, shape.stages};
    for (std::size_t i = own.begin; i < own.end; ++i) {
      ModelWeights cut = stage_weights(all[i], trained_config_of(config, {i, shards}), stage);
      for_each_learned(cut, config, {i, shards}, stage,
                       [&](const ListedTensor& tensor) { append(want, {tensor}); });
    }
    return want;
  });
}

}  // namespace t2t::tiny_grid
