#include "18_experiments/changes/dead_units.hpp"

#include <algorithm>
#include <vector>

#include "09_language_model/fast/forward.hpp"

namespace t2t {

std::size_t count_dead_units(const Model& model, std::span<const int> ids, std::size_t T) {
  const Config& config = model.config();
  const std::size_t F = config.block.F;
  std::vector<char> used(config.L * F, 0);
  const Trace note = [&](Part part, std::size_t layer, ConstMatrix hidden) {
    if (part != Part::hidden) return;
    for (std::size_t t = 0; t < hidden.rows; ++t)
      for (std::size_t f = 0; f < F; ++f) used[layer * F + f] |= hidden.row(t)[f] != 0;
  };
  ModelState state(config, T);
  Tensor<1> logits = empty(config.V);  // not read
  for (std::size_t first = 0; first < ids.size(); first += T) {
    reset(state);
    forward(model, state, ids.subspan(first, std::min(T, ids.size() - first)), row(logits), note);
  }
  return std::size_t(std::ranges::count(used, 0));
}

}  // namespace t2t
