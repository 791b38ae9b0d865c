#include "08_block/cached_attention.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <stdexcept>

#include "rows.hpp"
#include "shapes.hpp"

namespace t2t {

/// Chapter 06's kernel, with scratch memory for the widest layer.
static AttentionKernel grouped_kernel(std::span<const BlockSettings> layers, std::size_t S,
                                      std::size_t T_max) {
  const std::size_t H = widest(layers, [](const BlockSettings& s) { return s.H; });
  const std::size_t D = widest(layers, [](const BlockSettings& s) { return s.D; });
  return [scratch = GroupedScratch(T_max, S, H, D)](ConstMatrix q, const KeyValueHeads& heads,
                                                    Mask mask, Matrix out) mutable {
    grouped_attention_rows(q, heads, mask, out, scratch);
  };
}

/// Whether both can use the same RoPE table.
static bool same_table(const BlockSettings& a, const BlockSettings& b) {
  return a.uses_rope == b.uses_rope && a.D == b.D && a.theta == b.theta &&
         a.frequencies == b.frequencies;
}

CachedAttention::CachedAttention(std::span<const BlockSettings> layers, std::size_t S,
                                 std::size_t T_max, std::size_t texts, AttentionKernel kernel)
    : T_max_(T_max),
      threads_(thread_count()),
      layers_(layers.begin(), layers.end()),
      kernel_(std::move(kernel)) {
  expect(!layers.empty(), "layers", "at least 1", 0);
  expect(S >= 1, "S, the positions of the caches", "at least 1", double(S));
  expect(T_max >= 1, "T_max, the rows of a text in a call", "at least 1", double(T_max));
  expect(texts >= 1, "texts", "at least 1", double(texts));
  for (std::size_t l = 0; l < layers.size(); ++l) {
    expect_settings(layers[l]);
    const auto same = [&](const BlockSettings& other) { return same_table(other, layers[l]); };
    const auto earlier = std::ranges::find_if(layers.first(l), same) - layers.begin();
    const bool is_new = std::size_t(earlier) == l;
    if (is_new) tables_.push_back(block_rope_table(layers[l], S));
    table_of_.push_back(is_new ? tables_.size() - 1 : table_of_[std::size_t(earlier)]);
  }

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

/// Calls f(cache, first row, rows) for each run of a call of T rows.
template <class F>
void CachedAttention::for_each_run(std::size_t layer, std::size_t T, F f) {
  if (runs.empty()) return f(caches[0][layer], 0, T);
  std::size_t first = 0;
  for (const auto& [text, rows] : runs) {
    f(caches[text][layer], first, rows);
    first += rows;
  }
}

/// What a layer's cache and table were made for, as text for a message.
static std::string kept_as(const BlockSettings& s) {
  std::string words = fmt::format("H = {}, G = {}, D = {}, ", s.H, s.G, s.D);
  if (!s.uses_rope) return words + "no RoPE";
  const char* pairing = s.pairing == Pairing::halves ? "halves" : "neighbours";
  const char* scaled = s.frequencies.empty() ? "" : ", scaled";
  return words + fmt::format("theta = {}{}, {}", s.theta, scaled, pairing);
}

/// Throws unless the block has the heads and the RoPE that its layer was made for.
void CachedAttention::expect_block(const Block& block) const {
  if (block.layer() >= layers_.size() || thread_count() > threads_)
    throw std::invalid_argument(
        fmt::format("attention: made for {} layers and {} threads, wanted layer {} and {} threads",
                    layers_.size(), threads_, block.layer(), thread_count()));
  const BlockSettings &made = layers_[block.layer()], &wanted = block.settings();
  if (made.H != wanted.H || made.G != wanted.G || !same_table(made, wanted) ||
      (made.uses_rope && made.pairing != wanted.pairing))
    throw std::invalid_argument(fmt::format("attention, layer {}: made for {}; wanted {}",
                                            block.layer(), kept_as(made), kept_as(wanted)));
}

void CachedAttention::expect_rows(const Projected& in, ConstMatrix heads) {
  expect_block(in.block);
  const BlockSettings& s = in.block.settings();
  const std::size_t T = in.q.rows, layer = in.block.layer();
  expect_shape("q", in.q, {T, s.H * s.D});
  expect_shape("k", in.k, {T, s.G * s.D});
  expect_shape("v", in.v, {T, s.G * s.D});
  expect_shape("heads", heads, {T, s.H * s.D});

  std::size_t rows = runs.empty() ? T : 0;
  for (const Run& run : runs) {
    const auto of_text = [&](const Run& other) { return other.text == run.text; };
    if (run.text >= caches.size() || std::ranges::count_if(runs, of_text) > 1)
      throw std::invalid_argument(fmt::format("runs: wanted texts from 0 to {}, each once, got {}",
                                              caches.size() - 1, run.text));
    rows += run.rows;
  }
  if (rows != T)
    throw std::invalid_argument(fmt::format("runs: wanted {} rows in all, got {}", T, rows));

  for_each_run(layer, T, [&](const KvCache& cache, std::size_t first, std::size_t count) {
    expect_appendable(cache, in.k.rows_from(first, count), in.v.rows_from(first, count));
    if (count > T_max_)
      throw std::invalid_argument(
          fmt::format("attention: made for {} rows of a text, got {}", T_max_, count));
    if (s.uses_rope) expect_table(tables_[table_of_[layer]], s.D, next_position(cache), count);
  });
}

void CachedAttention::operator()(const Projected& in, Matrix heads, const Trace& trace) {
  expect_rows(in, heads);
  const BlockSettings& settings = in.block.settings();
  const std::size_t T = in.q.rows, D = settings.D, layer = in.block.layer();

  // Queries and keys are turned by their positions; values are not.
  if (settings.uses_rope) {
    const RopeTable& table = tables_[table_of_[layer]];
    for_each_run(layer, T, [&](const KvCache& cache, std::size_t first, std::size_t count) {
      const std::size_t position = next_position(cache);
      rope_rows(in.q.rows_from(first, count), D, table, position, settings.pairing);
      rope_rows(in.k.rows_from(first, count), D, table, position, settings.pairing);
    });
    tell(trace, Part::q_turned, layer, in.q);
    tell(trace, Part::k_turned, layer, in.k);
  }

  // Once appended, the new keys and values are like the old ones.
  for_each_run(layer, T, [&](KvCache& cache, std::size_t first, std::size_t count) {
    append(cache, in.k.rows_from(first, count), in.v.rows_from(first, count));
  });
  try {
    for_each_run(layer, T, [&](const KvCache& cache, std::size_t first, std::size_t count) {
      kernel_(in.q.rows_from(first, count), cached_heads(cache), Mask::sliding(settings.window),
              heads.rows_from(first, count));
    });
  } catch (...) {  // the kernel throws: the new tokens leave the caches again
    for_each_run(layer, T,
                 [](KvCache& cache, std::size_t, std::size_t count) { cache.length -= count; });
    throw;
  }
}

}  // namespace t2t
