#include "13_training/backward/batch_attention.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <stdexcept>

#include "shapes.hpp"

namespace t2t {

/// The settings that all layers share. Throws when their heads differ.
static const BlockSettings& alike(std::span<const BlockSettings> layers) {
  expect(!layers.empty(), "layers", "at least 1", 0);
  for (const BlockSettings& s : layers)
    if (s.H != layers[0].H || s.G != layers[0].G || s.D != layers[0].D)
      throw std::invalid_argument(
          fmt::format("layers: wanted H = {}, G = {}, D = {} in all, got H = {}, G = {}, D = {}",
                      layers[0].H, layers[0].G, layers[0].D, s.H, s.G, s.D));
  return layers[0];
}

BatchAttention::BatchAttention(std::span<const BlockSettings> layers, std::size_t B, std::size_t T,
                               const BlockChanges& changes)
    : T_(T),
      changes_(changes),
      layers_(layers, T, T),
      scratch_(alike(layers).H, layers[0].G, layers[0].D) {
  expect(B >= 1, "B, the texts of a batch", "at least 1", double(B));
  for (std::size_t b = 0; b < B; ++b) runs_.push_back({b, T});
}

void BatchAttention::operator()(const Projected& in, Matrix heads, const Trace& trace) {
  const BlockSettings& settings = in.block.settings();
  // No runs at all would count as one text, however short.
  const std::size_t texts = std::clamp<std::size_t>(in.q.rows / T_, 1, runs_.size());
  const std::span<const Run> runs = std::span(runs_).first(texts);
  layers_.expect_call(in, heads, runs, runs_.size());
  for_each_run(runs, in.q.rows, [&](std::size_t, std::size_t first, std::size_t count) {
    if (settings.uses_rope) layers_.turn(in, first, count, 0);
    change_queries_and_keys(changes_, settings, in.q.rows_from(first, count),
                            in.k.rows_from(first, count));
    flash_attention_rows(
        in.q.rows_from(first, count),
        side_by_side(in.k.rows_from(first, count), in.v.rows_from(first, count), settings.G),
        changed_mask(changes_, settings), heads.rows_from(first, count), scratch_);
  });
  tell(trace, Part::q_turned, in.block.layer(), in.q);
  tell(trace, Part::k_turned, in.block.layer(), in.k);
}

}  // namespace t2t
