#include "13_training/attention/batch_attention.hpp"

#include <fmt/core.h>

#include <stdexcept>
#include <string>
#include <utility>

#include "13_training/attention/weight_dropout.hpp"
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
                               AttentionChange change)
    : B_(B),
      T_(T),
      change_(std::move(change)),
      layers_(layers, T, T),
      scratch_(alike(layers).H, layers[0].G, layers[0].D) {
  expect(B >= 1, "B, the sequences of a batch", "at least 1", B);
}

void BatchAttention::operator()(const Projected& in, Matrix heads, const Trace& trace) {
  const BlockSettings& settings = in.block.settings();
  layers_.expect_call(in, heads, B_);
  for (const Run& run : in.runs)
    expect(run.rows == T_, "rows of a sequence", std::to_string(T_), run.rows);
  layers_.rotate(in, {});
  for_each_run(in.runs, [&](const Run& run, std::size_t first) {
    const Matrix q = in.q.rows_from(first, run.rows), k = in.k.rows_from(first, run.rows);
    if (change_.forward) change_.forward(settings, q, k);
    if (change_.drops_weights && dropout_.p > 0)
      return dropped_attention({dropout_, in.block.layer(), first / T_, settings.H, settings.G,
                                change_.rule_of(settings)},
                               q, k, in.v.rows_from(first, run.rows),
                               heads.rows_from(first, run.rows));
    flash_attention_rows(q, side_by_side(k, in.v.rows_from(first, run.rows), settings.G),
                         change_.rule_of(settings), heads.rows_from(first, run.rows), scratch_);
  });
  tell(trace, Part::q_rotated, in.block.layer(), in.q);
  tell(trace, Part::k_rotated, in.block.layer(), in.k);
}

}  // namespace t2t
