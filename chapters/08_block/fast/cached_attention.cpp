#include "08_block/fast/cached_attention.hpp"

#include "shapes.hpp"

namespace t2t {

AttentionKernel grouped_kernel(std::span<const BlockSettings> layers, std::size_t S,
                               std::size_t max_run_rows) {
  const std::size_t H = widest(layers, [](const BlockSettings& s) { return s.H; });
  const std::size_t D = widest(layers, [](const BlockSettings& s) { return s.D; });
  return [scratch = GroupedScratch(max_run_rows, S, H, D)](
             ConstMatrix q, const KeyValueHeads& heads, const ScoreRule& rule, Matrix out) mutable {
    grouped_attention_rows(q, heads, rule, out, scratch);
  };
}

CachedAttention::CachedAttention(std::span<const BlockSettings> layers, std::size_t S,
                                 std::size_t max_run_rows, std::size_t sequences,
                                 AttentionKernel kernel)
    : layers_(layers, S, max_run_rows), kernel_(std::move(kernel)) {
  expect(sequences >= 1, "sequences", "at least 1", sequences);
  caches.resize(sequences);
  for (std::vector<KvCache>& of_sequence : caches) {
    of_sequence.reserve(layers.size());  // or growing would copy caches
    for (const BlockSettings& settings : layers)
      of_sequence.push_back(make_kv_cache(settings.G, S, settings.D));
  }
  if (!kernel_) kernel_ = grouped_kernel(layers, S, max_run_rows);
}

void CachedAttention::operator()(const Projected& in, Matrix heads, const Trace& trace) {
  const BlockSettings& settings = in.block.settings();
  const std::size_t layer = in.block.layer();
  const auto cache_of = [&](const Run& run) -> KvCache& { return caches[run.sequence][layer]; };
  layers_.expect_call(in, heads, caches.size());
  for (const Run& run : in.runs) expect_no_gap(run, cache_of(run).length);

  // Queries and keys are rotated by their positions; values are not.
  layers_.rotate(in, trace);

  // The new keys and values follow those of the earlier positions, and from then on are treated
  // like them.
  for_each_run(in.runs, [&](const Run& run, std::size_t first) {
    cache_of(run).length = run.position;
    append(cache_of(run), in.k.rows_from(first, run.rows), in.v.rows_from(first, run.rows));
  });
  for_each_run(in.runs, [&](const Run& run, std::size_t first) {
    kernel_(in.q.rows_from(first, run.rows), cached_heads(cache_of(run)), rule_of(settings),
            heads.rows_from(first, run.rows));
  });
}

}  // namespace t2t
