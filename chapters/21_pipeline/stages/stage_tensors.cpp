#include "21_pipeline/stages/stage_tensors.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "shapes.hpp"

namespace t2t {

Range blocks_of(const Config& whole, StagePlace place) {
  const auto [stage, stages] = place;
  expect(stage < stages, "stage", fmt::format("below {}", stages), stage);
  expect(whole.L >= stages, "L, the blocks",
         fmt::format("at least one for each of {} stages", stages), whole.L);
  return range_with_more_first(whole.L, stages, stage);
}

Config stage_config(const Config& whole, StagePlace place) {
  const Range blocks = blocks_of(whole, place);
  Config config = whole;
  config.L = blocks.size();
  if (!whole.layers.empty())
    config.layers.assign(whole.layers.begin() + std::ptrdiff_t(blocks.begin),
                         whole.layers.begin() + std::ptrdiff_t(blocks.end));
  config.tied = place.stages > 1;
  config.learned_positions = whole.learned_positions && place.is_first();
  if (!place.is_first() && !place.is_last()) config.V = 1;
  return config;
}

ModelWeights stage_weights(const ModelWeights& weights, const Config& whole, StagePlace place) {
  const Range blocks = blocks_of(whole, place);
  const Weight& head = whole.tied ? weights.embedding : weights.head;
  ModelWeights own;
  own.embedding = place.is_first() ? weights.embedding
                  : place.is_last()
                      ? head
                      : Weight(Tensor<2>(xt::zeros<float>({std::size_t(1), whole.block.C})));
  if (whole.learned_positions && place.is_first()) own.positions = weights.positions;
  own.blocks.assign(weights.blocks.begin() + std::ptrdiff_t(blocks.begin),
                    weights.blocks.begin() + std::ptrdiff_t(blocks.end));
  own.final_norm = weights.final_norm;
  if (place.stages == 1) own.head = head;
  return own;
}

/// The names in the whole model, or "" for what the stage stores without learning it.
static std::string_view name_in_whole(const TensorInfo& info, StagePlace place) {
  if (info.name == "embedding" && !place.is_first()) return place.is_last() ? "head" : "";
  if (info.name.starts_with("final_norm") && !place.is_last()) return "";
  return info.name;
}

std::vector<ListedTensor> stage_tensors(ModelWeights& own, const Config& whole, StagePlace place,
                                        const std::function<bool(const TensorInfo&)>& is_here) {
  const std::size_t first = blocks_of(whole, place).begin;
  std::vector<ListedTensor> list;
  for_each_tensor(own, stage_config(whole, place), [&](const TensorInfo& info, auto& tensor) {
    if (tensor.size() > 0 && (!is_here || is_here(info)))
      list.push_back({info, numbers_of(tensor)});
  });
  for (auto& [info, numbers] : list) {
    info.name = name_in_whole(info, place);
    if (info.layer) *info.layer += first;
  }
  std::erase_if(list, [](const ListedTensor& tensor) { return tensor.info.name.empty(); });
  return list;
}

std::vector<ListedTensor> counted_once(const std::vector<ListedTensor>& own, const Config& whole) {
  std::vector<ListedTensor> list;
  ModelWeights none = room_for(whole);
  for_each_tensor(none, whole, [&](const TensorInfo& info, const auto&) {
    if (info.size() == 0) return;
    const auto found = std::ranges::find(
        own, full_name(info), [](const ListedTensor& tensor) { return full_name(tensor.info); });
    list.push_back({info, found == own.end() ? Row() : found->numbers});
  });
  return list;
}

}  // namespace t2t
