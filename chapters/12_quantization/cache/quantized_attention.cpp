#include "12_quantization/cache/quantized_attention.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "06_gqa/grouped_rows.hpp"
#include "rows.hpp"
#include "shapes.hpp"

namespace t2t {

QuantizedAttention::QuantizedAttention(CachedAttention& texts,
                                       std::span<const BlockSettings> layers, std::size_t S,
                                       std::size_t T_max, std::size_t bits, AttentionKernel kernel)
    : texts_(texts),
      S_(S),
      layers_(layers, S, T_max),
      scratch_(S, widest(layers, [](const BlockSettings& s) { return s.H; }),
               widest(layers, [](const BlockSettings& s) { return s.D; })),
      kernel_(std::move(kernel)) {
  if (texts.caches[0].size() != layers.size())
    throw std::invalid_argument(fmt::format("texts: wanted caches of {} layers, got {}",
                                            layers.size(), texts.caches[0].size()));
  caches.resize(texts.caches.size());
  for (std::vector<QuantizedCache>& of_text : caches) {
    of_text.reserve(layers.size());
    for (const BlockSettings& s : layers)
      of_text.push_back(
          {make_quantized_heads(bits, s.G, S, s.D), make_quantized_heads(bits, s.G, S, s.D)});
  }
  if (T_max == 1) return;  // one token reads the rounded rows
  const std::size_t floats =
      widest(layers, [](const BlockSettings& s) { return s.G * whole_blocks(s.D); });
  keys_ = empty(S, floats), values_ = empty(S, floats);
  if (!kernel_) kernel_ = grouped_kernel(layers, S, T_max);
}

void QuantizedAttention::expect_rows(const Projected& in, ConstMatrix heads) const {
  layers_.expect_call(in, heads, texts_.runs, caches.size());
  for_each_run(texts_.runs, in.q.rows, [&](std::size_t text, std::size_t, std::size_t count) {
    const std::size_t length = texts_.caches[text][in.block.layer()].length;
    expect(count >= 1, "T, the positions to append", "at least 1", double(count));
    if (length > S_ || count > S_ - length)
      throw std::invalid_argument(
          fmt::format("cache: length {} and T = {} more positions, wanted at most S = {} in all",
                      length, count, S_));
  });
}

/// Several tokens, the last of `length`: the rows that they see become floats for the kernel.
void QuantizedAttention::attend_floats(ConstMatrix q, const QuantizedCache& cache,
                                       std::size_t length, Mask mask, Matrix out) {
  const KeyRange seen = keys_seen(0, q.rows, q.rows, length, mask);
  const std::size_t G = cache.keys.G, D = cache.keys.D, wide = whole_blocks(D), s = seen.size();
  const Matrix keys(keys_.data(), G * s, D, wide), values(values_.data(), G * s, D, wide);
  for_each_row(G * s, 2 * D, [&](std::size_t i) {
    load_rows(cache.keys, i / s, seen.begin + i % s, keys.rows_from(i, 1));
    load_rows(cache.values, i / s, seen.begin + i % s, values.rows_from(i, 1));
  });
  kernel_(q, {keys.rows_from(0, s), values.rows_from(0, s), G, s * wide}, mask, out);
}

void QuantizedAttention::operator()(const Projected& in, Matrix heads, const Trace& trace) {
  expect_rows(in, heads);
  const BlockSettings& settings = in.block.settings();
  const std::size_t T = in.q.rows, layer = in.block.layer();
  const std::span<const Run> runs = texts_.runs;
  const auto length = [&](std::size_t text) -> std::size_t& {
    return texts_.caches[text][layer].length;
  };

  // Queries and keys are turned by their positions; values are not.
  if (settings.uses_rope) {
    for_each_run(runs, T, [&](std::size_t text, std::size_t first, std::size_t count) {
      layers_.turn(in, first, count, length(text));
    });
    tell(trace, Part::q_turned, layer, in.q);
    tell(trace, Part::k_turned, layer, in.k);
  }

  const Mask mask = Mask::sliding(settings.window);
  for_each_run(runs, T, [&](std::size_t text, std::size_t first, std::size_t count) {
    // Once rounded, the new keys and values are like the old ones.
    QuantizedCache& cache = caches[text][layer];
    store_rows(in.k.rows_from(first, count), length(text), cache.keys);
    store_rows(in.v.rows_from(first, count), length(text), cache.values);
    const std::size_t S = length(text) + count;
    const ConstMatrix q = in.q.rows_from(first, count);
    const Matrix out = heads.rows_from(first, count);
    if (count == 1)
      attend_quantized(q.row(0), cache, keys_seen(0, 1, S, mask), out.row(0), scratch_);
    else
      attend_floats(q, cache, S, mask, out);
  });
  // The rows count only now: had the kernel thrown, each text would be as long as before.
  for_each_run(runs, T,
               [&](std::size_t text, std::size_t, std::size_t count) { length(text) += count; });
}

}  // namespace t2t
