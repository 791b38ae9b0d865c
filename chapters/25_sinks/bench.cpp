// Times products with weights in MXFP4 compared with the same products of floats and of integers,
// and one token's attention with sinks compared with attention without them.
#include "timing/bench.hpp"

#include <fmt/core.h>

#include <string>
#include <vector>

#include "06_gqa/fast/grouped_rows.hpp"
#include "12_quantization/formats/relative_error.hpp"
#include "12_quantization/packed/packed_weight.hpp"
#include "25_sinks/fast/sink_rows.hpp"
#include "25_sinks/mxfp4/mxfp4_weight.hpp"
#include "linalg.hpp"
#include "random.hpp"
#include "rows.hpp"

namespace t2t {

/// A matrix of gpt-oss's experts. Eight copies take turns, so that they come from memory.
static void bench_mxfp4(Bench& bench, std::size_t T) {
  constexpr std::size_t N = 2880, copies = 8;
  const std::vector<std::uint8_t> stored = pack_mxfp4(Random(1).normal<2>({N, N}));
  Tensor<2> floats = empty(N, N);
  unpack_mxfp4(stored, floats);
  const std::vector<Tensor<2>> of_floats(copies, floats);
  std::vector<Weight> packed, integers;
  for (std::size_t i = 0; i < copies; ++i) {
    packed.push_back(mxfp4_weight(stored, N, N));
    integers.push_back(
        packed_weight(pack_rows(TensorType::q8_0, mxfp4_as_q8_0(stored, N, N), N, N)));
  }
  const Tensor<2> x = Random(2).normal<2>({T, N});
  Tensor<2> y = empty(T, N), want = empty(T, N);
  std::size_t i = 0;
  const auto in_mxfp4 = [&] { matmul_bt(x, packed[i++ % copies], y); };
  const auto in_floats = [&] { matmul_bt(x, ConstMatrix(of_floats[i++ % copies]), want); };
  const auto in_integers = [&] { matmul_bt(x, integers[i++ % copies], want); };
  const std::string what = fmt::format("MXFP4 [2880, 2880], T={}", T);
  in_mxfp4(), in_floats();
  bench.expect_right(what, relative_error(y, want) < 1e-5);
  in_integers();
  bench.expect_right(what + ", integers", relative_error(y, want) < 0.01);
  bench.against(what, in_mxfp4, "floats", in_floats);
  bench.against(what, in_mxfp4, "the same in Q8_0", in_integers);
}

/// One token at gpt-oss's sizes, over 4,096 positions or a window of them.
static void bench_sinks(Bench& bench, std::size_t window) {
  constexpr std::size_t S = 4096, H = 64, G = 8, D = 64;
  const Tensor<2> q = Random(1).normal<2>({1, H * D});
  KvCache cache = make_kv_cache(G, S, D);
  append(cache, Random(2).normal<2>({S, G * D}), Random(3).normal<2>({S, G * D}));
  const Tensor<1> sinks = xt::zeros<float>({H});
  Tensor<2> out = empty(1, H * D), without = out, scores = empty(thread_count(), H / G * S);
  GroupedScratch scratch(1, S, H, D);
  const auto with_sinks = [&] {
    sink_attention_rows(q, cached_heads(cache), Mask::sliding(window), row(sinks), out, scores);
  };
  with_sinks();
  bench.against(fmt::format("sinks, T=1, S=4096, window {}", window), with_sinks, "without", [&] {
    grouped_attention_rows(q, cached_heads(cache), Mask::sliding(window), without, scratch);
  });
}

void bench(Bench& bench) {
  for (const std::size_t T : {1, 64}) bench_mxfp4(bench, T);
  for (const std::size_t window : {0, 128}) bench_sinks(bench, window);
}

}  // namespace t2t
