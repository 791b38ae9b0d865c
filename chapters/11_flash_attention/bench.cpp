// Times flash attention beside chapter 06's kernel, which stores whole rows of scores. Both are
// called as a model's block calls them.
#include "bench.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "11_flash_attention/flash_attention.hpp"

namespace t2t {

static bool close(const Tensor<2>& got, const Tensor<2>& want) {
  return std::ranges::equal(got, want, [](float a, float b) { return std::abs(a - b) < 1e-5f; });
}

static void bench_prefill(Bench& bench, std::size_t H, std::size_t G, std::size_t D,
                          std::size_t T) {
  const Tensor<2> q = Random(1).normal<2>({T, H * D});
  const Tensor<2> k = Random(2).normal<2>({T, G * D}), v = Random(3).normal<2>({T, G * D});
  Tensor<2> flash_out = empty(T, H * D), out = empty(T, H * D);
  FlashScratch flash_scratch(H, G, D);
  GroupedScratch scratch(T, T, H, D);
  const auto flash = [&] {
    flash_attention_rows(q, side_by_side(k, v, G), Mask::causal, flash_out, flash_scratch);
  };
  const auto whole_rows = [&] {
    grouped_attention_rows(q, side_by_side(k, v, G), Mask::causal, out, scratch);
  };
  flash(), whole_rows();
  const std::string what = fmt::format("flash, H={} G={} T={} D={}, causal", H, G, T, D);
  bench.expect_right(what, close(flash_out, out));
  bench.against(what, flash, "whole rows of scores", whole_rows);

  if (T != 2048) return;
  const Mask window = Mask::sliding(256);
  const auto in_window = [&] {
    flash_attention_rows(q, side_by_side(k, v, G), window, flash_out, flash_scratch);
  };
  in_window();
  grouped_attention_rows(q, side_by_side(k, v, G), window, out, scratch);
  const std::string windowed = fmt::format("flash, H={} G={} T={} D={}, window of 256", H, G, T, D);
  bench.expect_right(windowed, close(flash_out, out));
  bench.against(windowed, in_window, "causal, without a window", flash);
}

void bench(Bench& bench) {
  for (const std::size_t T : {128, 512, 2048, 8192}) bench_prefill(bench, 9, 3, 64, T);
  bench_prefill(bench, 32, 8, 128, 1024);
}

}  // namespace t2t
