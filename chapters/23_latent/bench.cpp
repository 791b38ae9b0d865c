// Times decode with latent attention by length, compared with reading its cache and with chapter
// 06's attention for multi-head, grouped and multi-query caches of as many query heads.
#include "timing/bench.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "05_kv_cache/kv_cache.hpp"
#include "06_gqa/fast/grouped_rows.hpp"
#include "23_latent/fast/latent_decode.hpp"

namespace t2t {

/// The sizes of DeepSeek-V2-Lite: 16 heads of 128 + 64 channels over latents of 512.
static const LatentSettings lite{.C = 2048, .H = 16, .N = 128, .R = 64, .Dv = 128, .K = 512};
constexpr std::size_t D = 128;

/// One layer's latents, w_kvb and a query, and what one step needs.
struct LatentLayer {
  Tensor<2> q, rows, w_kvb, out;
  LatentScratch scratch;

  explicit LatentLayer(std::size_t S)
      : q(Random(1).normal<2>({1, lite.H * lite.query_width()})),
        rows(Random(2).normal<2>({S, lite.row_width()})),
        w_kvb(Random(3).normal<2>({lite.H * (lite.N + lite.Dv), lite.K}, 0.04f)),
        out(empty(1, lite.H * lite.Dv)),
        scratch(lite, S) {}

  /// From the query to the heads' outputs.
  const Tensor<2>& step() {
    latent_decode(row(std::as_const(q), 0), rows, w_kvb, lite, row(out, 0), scratch);
    return out;
  }
};

static bool close(const Tensor<2>& got, const Tensor<2>& want) {
  return std::ranges::equal(got, want, [](float a, float b) { return std::abs(a - b) < 1e-4f; });
}

static void bench_latent(Bench& bench, std::size_t S) {
  LatentLayer layer(S);
  const std::string what = fmt::format("absorbed decode, H=16 K=512 R=64 S={}", S);
  bench.expect_right(what,
                     close(layer.step(), attend_latent(layer.q, layer.rows, layer.w_kvb, lite)));
  const double bytes = double(layer.rows.size() + layer.w_kvb.size()) * sizeof(float);
  bench.against_read(what, bytes, [&] { layer.step(); });

  // The same step over chapter 06's caches.
  const Tensor<2> q = Random(4).normal<2>({1, lite.H * D});
  Tensor<2> out = empty(1, lite.H * D);
  for (const std::size_t G : {16, 4, 1}) {
    const Tensor<2> rows = Random(G).normal<2>({S, G * D}, 0.3f);
    KvCache cache = make_kv_cache(G, S, D);
    append(cache, rows, rows);
    GroupedScratch scratch(1, S, lite.H, D);
    bench.against(
        what, [&] { layer.step(); }, fmt::format("H=16 G={} D=128", G),
        [&] { grouped_attention_rows(q, cached_heads(cache), Mask::causal, out, scratch); });
  }
}

/// A step that expands all latents into keys and values first.
static void bench_expanding(Bench& bench, std::size_t S) {
  LatentLayer layer(S);
  bench.against(
      fmt::format("absorbed decode, S={}", S), [&] { layer.step(); }, "expanded in the step",
      [&] { attend_latent(layer.q, layer.rows, layer.w_kvb, lite); });
}

void bench(Bench& bench) {
  for (const std::size_t S : {1024, 4096, 16384}) bench_latent(bench, S);
  bench_expanding(bench, 1024);
}

}  // namespace t2t
