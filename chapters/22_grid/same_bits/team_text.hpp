// Text that a model in shards generates: the same tokens and logits, bit by bit, on any number of
// ranks.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "09_language_model/fast/model.hpp"
#include "19_ranks/start/communicator.hpp"

namespace t2t {

struct TeamText {
  std::vector<int> ids;  // of the new tokens, each the likeliest
  Tensor<2> logits;      // [new tokens, V] that each was chosen from
};

/// Continues the prompt by so many tokens. Of the whole model's weights, each rank keeps its own
/// shards' while it runs. All ranks must call it, with equal arguments; each gets the same. Throws
/// as config_of, ShardTeam and forward do.
TeamText team_text(const Communicator& ranks, const Config& whole, const ModelWeights& weights,
                   std::span<const int> prompt, std::size_t tokens, std::size_t shards);

}  // namespace t2t
