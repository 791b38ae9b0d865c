#include "22_grid/same_bits/team_text.hpp"

#include <algorithm>

#include "09_language_model/fast/forward.hpp"
#include "20_split_models/tensor_parallel/parallel_state.hpp"
#include "20_split_models/tensor_parallel/shard_weights.hpp"
#include "22_grid/same_bits/shard_team.hpp"

namespace t2t {

/// The same on each shard, since all of them get the same logits.
static TeamText text_of_shard(const Config& whole, const ModelWeights& weights,
                              const ShardGroup& group, std::span<const int> prompt,
                              std::size_t tokens) {
  const Shard shard = {group.rank, group.size};
  const Model model(config_of(whole, shard), shard_of(weights, whole, shard));
  ModelState state(model.config(), prompt.size() + tokens, parallel_options(group));
  TeamText text = {{}, empty(tokens, whole.V)};
  for (std::size_t n = 0; n < tokens; ++n) {
    const Row logits = row(text.logits, n);
    forward(model, state, n == 0 ? prompt : std::span<const int>(text.ids).last(1), logits);
    text.ids.push_back(int(std::ranges::max_element(logits) - logits.begin()));
  }
  return text;
}

TeamText team_text(const Communicator& ranks, const Config& whole, const ModelWeights& weights,
                   std::span<const int> prompt, std::size_t tokens, std::size_t shards) {
  ShardTeam team(ranks, shards);
  TeamText first;
  team.run([&](std::size_t i) {
    TeamText text = text_of_shard(whole, weights, team.group(i), prompt, tokens);
    if (i == 0) first = std::move(text);
  });
  return first;
}

}  // namespace t2t
