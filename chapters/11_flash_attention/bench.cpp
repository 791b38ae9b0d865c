// Times flash attention compared with chapter 06's kernel, which stores whole rows of scores, as a
// model's block calls both. Also times its products compared with BLAS, and flash attention
// compared with its products alone.
#include "timing/bench.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "05_kv_cache/kv_cache.hpp"
#include "11_flash_attention/flash_attention.hpp"
#include "11_flash_attention/register_tiles.hpp"
#include "linalg.hpp"
#include "rows.hpp"

namespace t2t {

static bool close(const Tensor<2>& got, const Tensor<2>& want) {
  return std::ranges::equal(got, want, [](float a, float b) { return std::abs(a - b) < 1e-5f; });
}

/// What a block of 48 queries and 64 keys multiplies, again and again.
struct Products {
  Tensor<2> k = Random(1).normal<2>({64, 64}), v = Random(2).normal<2>({64, 64});  // [keys, D]
  Tensor<2> q = Random(3).normal<2>({64, 48});                                     // [D, 48]
  Tensor<2> scores = empty(64, 48), values = xt::zeros<float>({64, 48});  // [keys, 48], [D, 48]
  Tensor<1> kept = xt::ones<float>({48}) * 0.5f;

  void scores_of_block() { multiply_tiles(k, q, scores); }
  void values_of_block() { add_transposed_tiles(v, scores, row(kept), values); }
};

static void bench_tiles(Bench& bench) {
  Products block;
  const Tensor<2> queries = xt::transpose(block.q);  // [48, D]
  Tensor<2> by_blas = empty(48, 64);
  const auto tiles = [&] {
    for (int i = 0; i < 200; ++i) block.scores_of_block();
  };
  const auto blas = [&] {
    for (int i = 0; i < 200; ++i) matmul_bt(queries, block.k, by_blas);
  };
  const std::string what = "200 times the scores of 48 queries and 64 keys, D = 64";
  tiles(), blas();
  bench.expect_right(what, close(block.scores, xt::transpose(by_blas)));
  bench.against(what, tiles, "BLAS", blas);
}

/// As many products as the scores of causal attention need, on one block that stays in a cache.
static void products_of(std::size_t H, std::size_t T, std::vector<Products>& of_thread) {
  const std::size_t blocks = H * T * (T + 1) / 2 / (48 * 64);
  for_each_task(blocks, 48 * 64 * 64, [&](std::size_t, std::size_t thread) {
    of_thread[thread].scores_of_block(), of_thread[thread].values_of_block();
  });
}

static void bench_prefill(Bench& bench, std::size_t H, std::size_t G, std::size_t D,
                          std::size_t T) {
  const Tensor<2> q = Random(1).normal<2>({T, H * D});
  KvCache cache = make_kv_cache(G, T, D);
  append(cache, Random(2).normal<2>({T, G * D}), Random(3).normal<2>({T, G * D}));
  const KeyValueHeads heads = cached_heads(cache);
  Tensor<2> flash_out = empty(T, H * D), out = empty(T, H * D);
  FlashScratch flash_scratch(H, G, D);
  GroupedScratch scratch(T, T, H, D);
  const auto flash = [&] {
    flash_attention_rows(q, heads, Mask::causal, flash_out, flash_scratch);
  };
  const auto whole_rows = [&] { grouped_attention_rows(q, heads, Mask::causal, out, scratch); };
  flash(), whole_rows();
  const std::string what = fmt::format("flash, H={} G={} T={} D={}, causal", H, G, T, D);
  bench.expect_right(what, close(flash_out, out));
  bench.against(what, flash, "whole rows of scores", whole_rows);

  if (T != 2048) return;
  std::vector<Products> of_thread(thread_count());
  bench.against(what, flash, "its products alone", [&] { products_of(H, T, of_thread); });
  const Mask window = Mask::sliding(256);
  const auto in_window = [&] { flash_attention_rows(q, heads, window, flash_out, flash_scratch); };
  in_window();
  grouped_attention_rows(q, heads, window, out, scratch);
  const std::string windowed = fmt::format("flash, H={} G={} T={} D={}, window of 256", H, G, T, D);
  bench.expect_right(windowed, close(flash_out, out));
  bench.against(windowed, in_window, "causal, without a window", flash);
}

void bench(Bench& bench) {
  bench_tiles(bench);
  for (const std::size_t T : {128, 512, 2048, 8192}) bench_prefill(bench, 9, 3, 64, T);
  bench_prefill(bench, 32, 8, 128, 1024);
}

}  // namespace t2t
