#include "08_block/cached_attention.hpp"

#include <fmt/core.h>

#include <stdexcept>

#include "rows.hpp"
#include "shapes.hpp"

namespace t2t {

AttentionKernel grouped_kernel(std::span<const BlockSettings> layers, std::size_t S,
                               std::size_t T_max) {
  const std::size_t H = widest(layers, [](const BlockSettings& s) { return s.H; });
  const std::size_t D = widest(layers, [](const BlockSettings& s) { return s.D; });
  return [scratch = GroupedScratch(T_max, S, H, D)](ConstMatrix q, const KeyValueHeads& heads,
                                                    Mask mask, Matrix out) mutable {
    grouped_attention_rows(q, heads, mask, out, scratch);
  };
}

CachedAttention::CachedAttention(std::span<const BlockSettings> layers, std::size_t S,
                                 std::size_t T_max, std::size_t texts, AttentionKernel kernel)
    : layers_(layers, S, T_max), kernel_(std::move(kernel)) {
  expect(texts >= 1, "texts", "at least 1", double(texts));
  caches.resize(texts);
  for (std::vector<KvCache>& of_text : caches) {
    of_text.reserve(layers.size());  // or growing would copy caches
    for (const BlockSettings& settings : layers)
      of_text.push_back(make_kv_cache(settings.G, S, settings.D));
  }
  runs.reserve(texts);
  if (!kernel_) kernel_ = grouped_kernel(layers, S, T_max);
}

std::size_t CachedAttention::position(std::size_t text) const {
  if (text >= caches.size())
    throw std::invalid_argument(
        fmt::format("text: wanted one from 0 to {}, got {}", caches.size() - 1, text));
  return next_position(caches[text][0]);
}

void CachedAttention::truncate(std::size_t position, std::size_t text) {
  this->position(text);  // throws for a text that is not there
  for (KvCache& cache : caches[text]) t2t::truncate(cache, position);
}

void CachedAttention::expect_rows(const Projected& in, ConstMatrix heads) {
  layers_.expect_call(in, heads, runs, caches.size());
  const BlockSettings& s = in.block.settings();
  const std::size_t layer = in.block.layer();
  for_each_run(runs, in.q.rows, [&](std::size_t text, std::size_t first, std::size_t count) {
    const KvCache& cache = caches[text][layer];
    expect_appendable(cache, in.k.rows_from(first, count), in.v.rows_from(first, count));
    if (s.uses_rope) expect_table(layers_.table(layer), s.D, next_position(cache), count);
  });
}

void CachedAttention::operator()(const Projected& in, Matrix heads, const Trace& trace) {
  expect_rows(in, heads);
  const BlockSettings& settings = in.block.settings();
  const std::size_t T = in.q.rows, layer = in.block.layer();
  const auto cache_of = [&](std::size_t text) -> KvCache& { return caches[text][layer]; };

  // Queries and keys are turned by their positions; values are not.
  if (settings.uses_rope) {
    for_each_run(runs, T, [&](std::size_t text, std::size_t first, std::size_t count) {
      layers_.turn(in, first, count, next_position(cache_of(text)));
    });
    tell(trace, Part::q_turned, layer, in.q);
    tell(trace, Part::k_turned, layer, in.k);
  }

  // Once appended, the new keys and values are like the old ones.
  for_each_run(runs, T, [&](std::size_t text, std::size_t first, std::size_t count) {
    append(cache_of(text), in.k.rows_from(first, count), in.v.rows_from(first, count));
  });
  try {
    for_each_run(runs, T, [&](std::size_t text, std::size_t first, std::size_t count) {
      kernel_(in.q.rows_from(first, count), cached_heads(cache_of(text)),
              Mask::sliding(settings.window), heads.rows_from(first, count));
    });
  } catch (...) {  // the kernel throws: the new tokens leave the caches again
    for_each_run(runs, T, [&](std::size_t text, std::size_t, std::size_t count) {
      cache_of(text).length -= count;
    });
    throw;
  }
}

}  // namespace t2t
