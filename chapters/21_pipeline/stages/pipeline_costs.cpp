#include "21_pipeline/stages/pipeline_costs.hpp"

#include "19_ranks/counting/costs.hpp"
#include "19_ranks/sharded/sharded_step.hpp"

namespace t2t {

Sent neighbours_cost(const Config& whole, StagePlace place, std::size_t tokens, std::size_t parts) {
  const std::size_t neighbours = (place.is_first() ? 0 : 1) + (place.is_last() ? 0 : 1);
  const std::size_t messages = neighbours * parts;
  return {messages, messages * tokens * whole.block.C * sizeof(float)};
}

Sent table_cost(const Config& whole, StagePlace place) {
  const bool has_table = place.is_first() != place.is_last();
  return whole.tied && has_table ? Sent{1, whole.V * whole.block.C * sizeof(float)} : Sent{};
}

Sent pipeline_step_cost(const Config& whole, StagePlace place, std::size_t tokens,
                        std::size_t parts) {
  const auto [stage, stages] = place;
  // The loss in two values, and the norm's in two rounds from each rank; a value is two floats.
  const Sent loss = tree_all_reduce_cost(2 * 2, stages, stage);
  const Sent norm = tree_all_reduce_cost(2 * norm_values_first * stages, stages, stage) +
                    tree_all_reduce_cost(2 * norm_values_second * stages, stages, stage);
  return neighbours_cost(whole, place, tokens, parts) + table_cost(whole, place) + loss + norm;
}

/// Elements that a token saves in a block: chapter 13's kept_for_backward.hpp.
static std::size_t kept_elements(const BlockSettings& s) {
  const std::size_t hidden = (is_gated(s.activation) ? 2 : 1) * s.F;
  const std::size_t before_last_norm = s.norm_place == NormPlace::after ? s.C : 0;
  return 2 * s.C + 2 * s.H * s.D + 2 * s.G * s.D + hidden + before_last_norm;
}

std::size_t kept_cost(const Config& whole, StagePlace place, std::size_t tokens,
                      std::size_t in_flight) {
  const Range blocks = blocks_of(whole, place);
  std::size_t elements = place.is_last() ? whole.block.C : 0;
  for (std::size_t l = blocks.begin; l < blocks.end; ++l)
    elements += kept_elements(settings_of(whole, l));
  return in_flight * tokens * elements * sizeof(float);
}

}  // namespace t2t
