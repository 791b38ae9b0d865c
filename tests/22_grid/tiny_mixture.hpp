// Small mixtures, and what a grid learns of them: each tensor by its name and shard, whichever
// ranks have it.
#pragma once

#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "22_grid/tiny_grid.hpp"

namespace t2t::tiny_grid {

/// Five experts, which two to four ranks divide unevenly or not, each with F = 13 channels.
inline Config mixture_config(std::size_t E = 5, std::size_t k = 2) {
  Config config = llama_config(true);
  config.block.F = 13, config.block.experts = E, config.block.chosen = k;
  return config;
}

/// Everything that has an influence on a training on a grid.
struct MixtureRun {
  Config config = mixture_config();
  TrainingOptions options = options_of(4, 0.1f);
  std::size_t shards = 0, steps = few_steps;
  GridBalance balance = {};
};

/// A tensor's number in the whole model; the copy of a tied table comes after all.
inline std::size_t number_of(const TensorInfo& info, const Config& whole) {
  std::size_t number = 0, found = std::size_t(-1);
  ModelWeights none = room_for(whole);
  for_each_tensor(none, whole, [&](const TensorInfo& other, const auto&) {
    if (full_name(other) == full_name(info) && other.size() > 0) found = number;
    ++number;
  });
  return found == std::size_t(-1) ? number : found;
}

using OfShard = std::pair<std::size_t, std::size_t>;  // the tensor's number, the shard
struct TrainedMixture {
  std::string error;
  Floats reports;  // the same on all ranks
  std::map<OfShard, Floats> tensors;
};

inline void append_learned(Floats& to, const std::vector<ListedTensor>& tensors,
                           const Config& whole, std::size_t shard) {
  for (const ListedTensor& tensor : tensors) {
    for (const std::size_t n : {number_of(tensor.info, whole), shard, tensor.numbers.size()})
      to.push_back(float(n));
    append(to, {tensor});
  }
}

/// What ranks found: so many values, and then what append_learned wrote. An error if two of them
/// have other bits.
inline TrainedMixture put_together(const OnRanks& got, std::size_t values) {
  TrainedMixture all{.error = got.error, .reports = {}, .tensors = {}};
  if (!got.error.empty()) return all;
  for (const Floats& of_rank : got.results) {
    const auto after = of_rank.begin() + std::ptrdiff_t(values);
    const Floats reports(of_rank.begin(), after);
    if (all.reports.empty()) all.reports = reports;
    if (reports != all.reports) all.error = "ranks report different values";
    for (auto at = after; at < of_rank.end();) {
      const OfShard key = {std::size_t(at[0]), std::size_t(at[1])};
      const Floats elements(at + 3, at + 3 + std::ptrdiff_t(at[2]));
      const auto [known, is_new] = all.tensors.try_emplace(key, elements);
      if (!is_new && known->second != elements)
        all.error =
            fmt::format("tensor {} of shard {} differs between ranks", key.first, key.second);
      at += 3 + std::ptrdiff_t(elements.size());
    }
  }
  return all;
}

enum class Found { weights, gradients };
inline TrainedMixture trained_mixture(const GridShape& shape, const MixtureRun& run,
                                      Found what = Found::weights) {
  const OnRanks got = on_ranks(shape.ranks(), [&](const Communicator& ranks) {
    const RankGrid grid(ranks, shape);
    const std::vector<int> ids = tiny_ids();
    GridTrainer trainer(grid, run.config, weights_of(run.config), run.options, ids, run.shards,
                        run.balance);
    Floats found;
    for (std::size_t n = 0; n < run.steps; ++n) {
      const StepReport report = trainer.step();
      append_exactly(found, report.loss);
      append_exactly(found, report.gradient_norm);
    }
    const Range own = shards_of(shape, grid.place(), run.shards);
    for (std::size_t i = 0; i < own.size(); ++i) {
      const GridShard& shard = *trainer.shards()[i];
      append_learned(found, what == Found::weights ? shard.weights() : shard.gradients(),
                     run.config, own.begin + i);
    }
    return found;
  });
  return put_together(got, 6 * run.steps);
}

/// "" if both found the same bits.
inline std::string first_unlike(const TrainedMixture& got, const TrainedMixture& want) {
  if (!got.error.empty()) return got.error;
  if (got.reports != want.reports)
    return "losses and norms: " + first_difference(got.reports, want.reports);
  if (got.tensors.size() != want.tensors.size())
    return fmt::format("{} tensors, wanted {}", got.tensors.size(), want.tensors.size());
  for (const auto& [key, elements] : want.tensors) {
    const auto found = got.tensors.find(key);
    if (found == got.tensors.end())
      return fmt::format("tensor {} of shard {} is on no rank", key.first, key.second);
    if (found->second != elements)
      return fmt::format("tensor {} of shard {}: {}", key.first, key.second,
                         first_difference(found->second, elements));
  }
  return "";
}

inline std::string text_of(const GridShape& shape) {
  return fmt::format("{} x {} x {} x {}", shape.data, shape.stages, shape.tensor, shape.experts);
}

}  // namespace t2t::tiny_grid
