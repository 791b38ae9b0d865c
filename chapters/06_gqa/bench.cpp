// Times decode over the caches of 10, 30 or 90 layers, which hold 360 MiB together for each G;
// decode in place compared with copies of each group; and a prompt.
#include "timing/bench.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "05_kv_cache/kv_cache.hpp"
#include "06_gqa/fast/grouped_rows.hpp"
#include "06_gqa/grouped_query_attention.hpp"
#include "06_gqa/repeat_kv.hpp"

namespace t2t {

namespace {

constexpr std::size_t H = 9, D = 64, S = 8192;

/// Caches of L layers, with all S positions filled.
std::vector<KvCache> full_caches(std::size_t L, std::size_t G) {
  const Tensor<2> rows = Random(G).normal<2>({S, G * D}, 0.3f);
  std::vector<KvCache> caches;
  for (std::size_t l = 0; l < L; ++l)
    append(caches.emplace_back(make_kv_cache(G, S, D)), rows, rows);
  return caches;
}

bool close(const Tensor<2>& got, const Tensor<2>& want) {
  return std::ranges::equal(got, want, [](float a, float b) { return std::abs(a - b) < 1e-5f; });
}

void bench_decode(Bench& bench, std::size_t L, std::size_t G) {
  const std::vector<KvCache> caches = full_caches(L, G);
  const Tensor<2> q = Random(1).normal<2>({1, H * D});
  Tensor<2> out = empty(1, H * D);
  GroupedScratch scratch(1, S, H, D);
  const std::string what = fmt::format("decode, {} layers, H={} G={} D={} S={}", L, H, G, D, S);

  grouped_attention_rows(q, cached_heads(caches[0]), Mask::causal, out, scratch);
  const Tensor<2> rows = Random(G).normal<2>({S, G * D}, 0.3f);
  bench.expect_right(what, close(out, grouped_query_attention(q, rows, rows, H, G, Mask::causal)));
  const double bytes_read = double(L) * double(bytes(caches[0]));
  bench.against_read(what, bytes_read, [&] {
    for (const KvCache& cache : caches)
      grouped_attention_rows(q, cached_heads(cache), Mask::causal, out, scratch);
  });
}

/// The same decode step as it is often written: a copy of its group for each query head, then
/// chapter 04's attention.
void bench_copies(Bench& bench) {
  const std::size_t G = 3;
  const Tensor<2> q = Random(1).normal<2>({1, H * D});
  const Tensor<2> k = Random(2).normal<2>({S, G * D}), v = Random(3).normal<2>({S, G * D});
  Tensor<2> out = empty(1, H * D), copied = empty(1, H * D);
  GroupedScratch scratch(1, S, H, D);
  AttentionScratch of_heads(1, S);
  const auto in_place = [&] {
    grouped_attention_rows(q, side_by_side(k, v, G), Mask::causal, out, scratch);
  };
  const auto copy_first = [&] {
    const Tensor<2> all_k = repeat_kv(k, H, G), all_v = repeat_kv(v, H, G);  // [S, H·D]
    attention_rows(q, side_by_side(all_k, all_v, H), Mask::causal, copied, of_heads);
  };
  in_place(), copy_first();
  bench.expect_right("decode in place", close(out, copied));
  bench.against("decode in place, G=3 S=8192", in_place, "repeat_kv first", copy_first);
}

void bench_prefill(Bench& bench) {
  const std::size_t T = 512;
  const Tensor<2> q = Random(1).normal<2>({T, H * D});
  const Tensor<2> k = Random(2).normal<2>({T, H * D}), v = Random(3).normal<2>({T, H * D});
  Tensor<2> shared = empty(T, H * D), own = empty(T, H * D);
  GroupedScratch scratch(T, T, H, D);
  AttentionScratch of_heads(T, T);
  const auto grouped = [&] {
    const ConstMatrix first_k = ConstMatrix(k).cols_from(0, 3 * D);  // [T, 3·D]
    const ConstMatrix first_v = ConstMatrix(v).cols_from(0, 3 * D);
    grouped_attention_rows(q, side_by_side(first_k, first_v, 3), Mask::causal, shared, scratch);
  };
  bench.against("prefill, G=3 T=512", grouped, "chapter 04, 9 key heads",
                [&] { attention_rows(q, side_by_side(k, v, H), Mask::causal, own, of_heads); });
}

}  // namespace

void bench(Bench& bench) {
  bench_decode(bench, 10, 9);
  bench_decode(bench, 30, 3);
  bench_decode(bench, 90, 1);
  bench_copies(bench);
  bench_prefill(bench);
}

}  // namespace t2t
