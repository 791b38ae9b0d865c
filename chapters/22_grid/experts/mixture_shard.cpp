#include "22_grid/experts/mixture_shard.hpp"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

#include "20_split_models/expert_parallel/expert_ranges.hpp"
#include "20_split_models/expert_parallel/experts_elsewhere.hpp"
#include "20_split_models/tensor_parallel/split_gradients.hpp"
#include "shapes.hpp"

namespace t2t {

static bool has_experts(const Config& config) { return settings_of(config, 0).experts > 0; }

bool is_at(const TensorInfo& info, const Config& config, ExpertPlace place) {
  return !is_elsewhere(info, config, place.ranks, place.rank);
}

/// Throws unless all layers have equally many experts, enough for the ranks, and nothing beside
/// them.
static void expect_mixture(const Config& whole, ExpertPlace place) {
  const std::size_t E = settings_of(whole, 0).experts;
  if (place.ranks > 1)
    expect(E >= place.ranks, "experts of a layer",
           fmt::format("at least one for each of {} expert ranks", place.ranks), E);
  for (const BlockSettings& s : settings_of_all(whole)) {
    expect(s.experts == E, "experts of a layer", fmt::format("{}, as in the first", E), s.experts);
    if (s.shared > 0)
      throw std::invalid_argument("shared: wanted experts alone, got a network beside them");
  }
}

/// The same model with one network in place of a layer's experts.
static Config with_one_network(Config whole) {
  const auto change = [](BlockSettings& block) {
    block.experts = block.chosen = 0, block.normalized = true;
  };
  change(whole.block);
  for (BlockSettings& block : whole.layers) change(block);
  return whole;
}

Config grid_config_of(const Config& whole, Shard shard, ExpertPlace place) {
  expect_mixture(whole, place);
  Config own = trained_config_of(with_one_network(whole), shard);
  const auto restore = [](BlockSettings& block, const BlockSettings& from) {
    block.experts = from.experts, block.chosen = from.chosen, block.normalized = from.normalized;
  };
  restore(own.block, whole.block);
  for (std::size_t l = 0; l < own.layers.size(); ++l) restore(own.layers[l], whole.layers[l]);
  return own;
}

Piece grid_piece_of(const TensorInfo& info, const Config& whole, Shard shard) {
  return piece_of(info, with_one_network(whole), shard);
}

/// A shard of the model that has expert e of each layer as its network.
static ModelWeights shard_with_expert(ModelWeights weights, const Config& whole, Shard shard,
                                      std::size_t e) {
  for (BlockWeights& block : weights.blocks) {
    block.feed_forward = std::move(block.experts[e]);
    block.experts.clear();
  }
  return trained_shard_of(weights, with_one_network(whole), shard);
}

ModelWeights grid_shard_of(const ModelWeights& weights, const Config& whole, Shard shard,
                           ExpertPlace place) {
  const Config config = grid_config_of(whole, shard, place);
  if (!has_experts(whole)) return trained_shard_of(weights, whole, shard);
  const std::size_t E = settings_of(whole, 0).experts;
  const Range experts = own_experts(E, place.ranks, place.rank);
  ModelWeights own = shard_with_expert(weights, whole, shard, experts.begin);
  for (std::size_t l = 0; l < own.blocks.size(); ++l) {
    own.blocks[l].feed_forward = {};
    own.blocks[l].router = weights.blocks[l].router;
    own.blocks[l].experts.resize(settings_of(whole, l).experts);
  }
  for (std::size_t e = experts.begin; e < experts.end; ++e) {
    ModelWeights with_expert = shard_with_expert(weights, whole, shard, e);
    for (std::size_t l = 0; l < own.blocks.size(); ++l)
      own.blocks[l].experts[e] = std::move(with_expert.blocks[l].feed_forward);
  }
  return without_others_experts(std::move(own), config, place.ranks, place.rank);
}

}  // namespace t2t
