#include "12_quantization/cache/quantized_attention.hpp"

#include <algorithm>
#include <utility>

#include "06_gqa/fast/grouped_rows.hpp"
#include "rows.hpp"
#include "shapes.hpp"

namespace t2t {

QuantizedAttention::QuantizedAttention(std::span<const BlockSettings> layers, std::size_t S,
                                       std::size_t max_run_rows, std::size_t sequences,
                                       std::size_t bits, AttentionKernel kernel)
    : layers_(layers, S, max_run_rows),
      scratch_(S, widest(layers, [](const BlockSettings& s) { return s.H; }),
               widest(layers, [](const BlockSettings& s) { return s.D; })),
      kernel_(std::move(kernel)) {
  expect(sequences >= 1, "sequences", "at least 1", sequences);
  caches.resize(sequences);
  for (std::vector<QuantizedCache>& of_sequence : caches) {
    of_sequence.reserve(layers.size());
    for (const BlockSettings& s : layers)
      of_sequence.push_back(
          {make_quantized_heads(bits, s.G, S, s.D), make_quantized_heads(bits, s.G, S, s.D)});
  }
  if (max_run_rows == 1) return;  // one token reads the rounded rows
  const std::size_t floats =
      widest(layers, [](const BlockSettings& s) { return s.G * whole_blocks(s.D); });
  keys_ = empty(S, floats), values_ = empty(S, floats);
  if (!kernel_) kernel_ = grouped_kernel(layers, S, max_run_rows);
}

/// Several tokens, the last of the cache: the rows that they see become floats for the kernel.
void QuantizedAttention::attend_floats(ConstMatrix q, const QuantizedCache& cache,
                                       const ScoreRule& rule, Matrix out) {
  const KeyRange seen = keys_seen(0, q.rows, q.rows, cache.length, rule.mask);
  const std::size_t G = cache.keys.G, D = cache.keys.D, wide = whole_blocks(D), s = seen.size();
  const Matrix keys(keys_.data(), G * s, D, wide), values(values_.data(), G * s, D, wide);
  for_each_row(G * s, 2 * D, [&](std::size_t i) {
    load_rows(cache.keys, i / s, seen.begin + i % s, keys.rows_from(i, 1));
    load_rows(cache.values, i / s, seen.begin + i % s, values.rows_from(i, 1));
  });
  kernel_(q, {keys.rows_from(0, s), values.rows_from(0, s), G, s * wide}, rule, out);
}

void QuantizedAttention::operator()(const Projected& in, Matrix heads, const Trace& trace) {
  const BlockSettings& settings = in.block.settings();
  const std::size_t layer = in.block.layer();
  const auto cache_of = [&](const Run& run) -> QuantizedCache& {
    return caches[run.sequence][layer];
  };
  layers_.expect_call(in, heads, caches.size());
  for (const Run& run : in.runs) expect_no_gap(run, cache_of(run).length);

  // Queries and keys are rotated by their positions; values are not.
  layers_.rotate(in, trace);

  const ScoreRule rule = rule_of(settings);
  for_each_run(in.runs, [&](const Run& run, std::size_t first) {
    // Once rounded, the new keys and values are like the old ones.
    QuantizedCache& cache = cache_of(run);
    store_rows(in.k.rows_from(first, run.rows), run.position, cache.keys);
    store_rows(in.v.rows_from(first, run.rows), run.position, cache.values);
    cache.length = run.position + run.rows;
    const ConstMatrix q = in.q.rows_from(first, run.rows);
    const Matrix out = heads.rows_from(first, run.rows);
    if (run.rows == 1)
      attend_quantized(q.row(0), cache, keys_seen(0, 1, cache.length, rule.mask), out.row(0),
                       scratch_, rule);
    else
      attend_floats(q, cache, rule, out);
  });
}

}  // namespace t2t
