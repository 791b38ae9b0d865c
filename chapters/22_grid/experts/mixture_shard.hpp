// What a shard has of a mixture of experts: of each of its experts a part of the hidden channels,
// as of a single network, and the whole router.
//
//   rows of an expert's w_gate, w_up    the own hidden channels     router    whole on each rank
//   columns of an expert's w_down       the own hidden channels
//
// Chapter 20 divides models without experts. Here each expert in turn stands where such a model has
// its network. All functions take models without experts, too, of which they say what chapter 20
// says.
#pragma once

#include "13_training/trainer/tensor_list.hpp"
#include "20_split_models/tensor_parallel/shards.hpp"

namespace t2t {

/// The experts of a rank of a line of expert ranks: a range of them (chapter 20's own_experts).
struct ExpertPlace {
  std::size_t rank = 0, ranks = 1;
};
/// Whether a rank has a tensor at all: everything but other ranks' experts.
bool is_at(const TensorInfo& info, const Config& config, ExpertPlace place);

/// The Config of a shard's own model in training: chapter 20's trained_config_of, where F is that
/// of the experts. Throws as it does; and std::invalid_argument for a network beside the experts,
/// for layers with different numbers of experts, and for fewer experts than expert ranks.
Config grid_config_of(const Config& whole, Shard shard, ExpertPlace place = {});

/// The part of a tensor that the shard has; info is of the whole model.
Piece grid_piece_of(const TensorInfo& info, const Config& whole, Shard shard);

/// Its weights, of a model whose weights are floats. Other ranks' experts have no elements, and to
/// use one throws std::logic_error. Throws as grid_config_of does.
ModelWeights grid_shard_of(const ModelWeights& weights, const Config& whole, Shard shard,
                           ExpertPlace place);

}  // namespace t2t
