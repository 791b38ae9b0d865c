#include "12_quantization/quantized_attention.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "06_gqa/grouped_rows.hpp"
#include "rows.hpp"
#include "shapes.hpp"

namespace t2t {

static std::size_t widest_H(std::span<const BlockSettings> layers) {
  return widest(layers, [](const BlockSettings& s) { return s.H; });
}
static std::size_t widest_D(std::span<const BlockSettings> layers) {
  return widest(layers, [](const BlockSettings& s) { return s.D; });
}

/// Chapter 06's kernel, with scratch memory for the widest layer.
static AttentionKernel grouped_kernel(std::span<const BlockSettings> layers, std::size_t S,
                                      std::size_t T_max) {
  return [scratch = GroupedScratch(T_max, S, widest_H(layers), widest_D(layers))](
             ConstMatrix q, const KeyValueHeads& heads, Mask mask, Matrix out) mutable {
    grouped_attention_rows(q, heads, mask, out, scratch);
  };
}

/// Whether both can use the same RoPE table.
static bool same_table(const BlockSettings& a, const BlockSettings& b) {
  return a.uses_rope == b.uses_rope && a.D == b.D && a.theta == b.theta &&
         a.frequencies == b.frequencies;
}

static void expect_sizes(std::span<const BlockSettings> layers, std::size_t S, std::size_t T_max) {
  expect(!layers.empty(), "layers", "at least 1", 0);
  expect(S >= 1, "S, the positions of the caches", "at least 1", double(S));
  expect(T_max >= 1, "T_max, the rows of a text in a call", "at least 1", double(T_max));
  for (const BlockSettings& settings : layers) expect_settings(settings);
}

QuantizedAttention::QuantizedAttention(CachedAttention& texts,
                                       std::span<const BlockSettings> layers, std::size_t S,
                                       std::size_t T_max, std::size_t bits, AttentionKernel kernel)
    : texts_(texts),
      S_((expect_sizes(layers, S, T_max), S)),
      T_max_(T_max),
      threads_(thread_count()),
      layers_(layers.begin(), layers.end()),
      scratch_(S, widest_H(layers), widest_D(layers)),
      kernel_(std::move(kernel)) {
  if (texts.caches[0].size() != layers.size())
    throw std::invalid_argument(fmt::format("texts: wanted caches of {} layers, got {}",
                                            layers.size(), texts.caches[0].size()));
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const auto same = [&](const BlockSettings& other) { return same_table(other, layers[l]); };
    const auto earlier = std::ranges::find_if(layers.first(l), same) - layers.begin();
    const bool is_new = std::size_t(earlier) == l;
    if (is_new) tables_.push_back(block_rope_table(layers[l], S));
    table_of_.push_back(is_new ? tables_.size() - 1 : table_of_[std::size_t(earlier)]);
  }

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

/// Calls f(text, first row, rows) for each run of a call of T rows.
template <class F>
void QuantizedAttention::for_each_run(std::size_t T, F f) {
  if (texts_.runs.empty()) return f(std::size_t(0), std::size_t(0), T);
  std::size_t first = 0;
  for (const Run& run : texts_.runs) {
    f(run.text, first, run.rows);
    first += run.rows;
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
void QuantizedAttention::expect_block(const Block& block) const {
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

/// Throws unless the runs are of texts that are there, each once, and add up to T rows.
static void expect_runs(std::span<const Run> runs, std::size_t texts, std::size_t T) {
  std::size_t rows = runs.empty() ? T : 0;
  for (const Run& run : runs) {
    const auto of_text = [&](const Run& other) { return other.text == run.text; };
    if (run.text >= texts || std::ranges::count_if(runs, of_text) > 1)
      throw std::invalid_argument(
          fmt::format("runs: wanted texts from 0 to {}, each once, got {}", texts - 1, run.text));
    rows += run.rows;
  }
  if (rows != T)
    throw std::invalid_argument(fmt::format("runs: wanted {} rows in all, got {}", T, rows));
}

void QuantizedAttention::expect_rows(const Projected& in, ConstMatrix heads) {
  expect_block(in.block);
  const BlockSettings& s = in.block.settings();
  const std::size_t T = in.q.rows;
  expect_shape("q", in.q, {T, s.H * s.D});
  expect_shape("k", in.k, {T, s.G * s.D});
  expect_shape("v", in.v, {T, s.G * s.D});
  expect_shape("heads", heads, {T, s.H * s.D});
  expect_runs(texts_.runs, caches.size(), T);
  for_each_run(T, [&](std::size_t text, std::size_t, std::size_t count) {
    const std::size_t length = texts_.caches[text][in.block.layer()].length;
    expect(count >= 1, "T, the positions to append", "at least 1", double(count));
    if (length > S_ || count > S_ - length)
      throw std::invalid_argument(
          fmt::format("cache: length {} and T = {} more positions, wanted at most S = {} in all",
                      length, count, S_));
    if (count > T_max_)
      throw std::invalid_argument(
          fmt::format("attention: made for {} rows of a text, got {}", T_max_, count));
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
  const std::size_t T = in.q.rows, D = settings.D, layer = in.block.layer();
  const auto length = [&](std::size_t text) -> std::size_t& {
    return texts_.caches[text][layer].length;
  };

  // Queries and keys are turned by their positions; values are not.
  if (settings.uses_rope) {
    const RopeTable& table = tables_[table_of_[layer]];
    for_each_run(T, [&](std::size_t text, std::size_t first, std::size_t count) {
      rope_rows(in.q.rows_from(first, count), D, table, length(text), settings.pairing);
      rope_rows(in.k.rows_from(first, count), D, table, length(text), settings.pairing);
    });
    tell(trace, Part::q_turned, layer, in.q);
    tell(trace, Part::k_turned, layer, in.k);
  }

  const Mask mask = Mask::sliding(settings.window);
  for_each_run(T, [&](std::size_t text, std::size_t first, std::size_t count) {
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
  for_each_run(T, [&](std::size_t text, std::size_t, std::size_t count) { length(text) += count; });
}

}  // namespace t2t
