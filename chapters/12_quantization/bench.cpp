// Times a product with packed weights compared with the same product of floats, attention to a
// rounded cache compared with attention to floats, and decoding one token of a model of
// SmolLM2-135M's sizes compared with reading its packed weights.
#include "timing/bench.hpp"

#include <fmt/core.h>

#include <string>
#include <vector>

#include "05_kv_cache/kv_cache.hpp"
#include "06_gqa/fast/grouped_rows.hpp"
#include "09_language_model/fast/forward.hpp"
#include "12_quantization/cache/quantized_cache.hpp"
#include "12_quantization/formats/relative_error.hpp"
#include "12_quantization/packed/packed_weight.hpp"
#include "linalg.hpp"

namespace t2t {

static void bench_product(Bench& bench, TensorType type, std::size_t T) {
  const std::size_t rows = 1536, cols = 576;
  const Weight packed = packed_floats(type, Random(1).normal<2>({rows, cols}));
  Tensor<2> room;
  const Tensor<2>& floats = floats_of(packed, room);
  const Tensor<2> x = Random(2).normal<2>({T, cols});
  Tensor<2> y = empty(T, rows), want = empty(T, rows);
  const auto of_packed = [&] { matmul_bt(x, packed, y); };
  const auto of_floats = [&] { matmul_bt(x, ConstMatrix(floats), want); };
  of_packed(), of_floats();
  const std::string what = fmt::format("{} [1536, 576], T={}", type_name(type), T);
  bench.expect_right(what, relative_error(y, want) < 0.01);  // activations rounded to 8 bits
  bench.against(what, of_packed, "floats", of_floats);
}

/// One token with the caches of ten layers in turn, so that they come from memory, as in a model.
static void bench_cache(Bench& bench, std::size_t bits) {
  const std::size_t S = 8192, H = 9, G = 3, D = 64, layers = 10;
  const Tensor<2> q = Random(1).normal<2>({1, H * D});
  const Tensor<2> k = Random(2).normal<2>({S, G * D}), v = Random(3).normal<2>({S, G * D});
  std::vector<KvCache> floats;
  std::vector<QuantizedCache> rounded;
  for (std::size_t l = 0; l < layers; ++l) {
    floats.push_back(make_kv_cache(G, S, D));
    append(floats[l], k, v);
    rounded.push_back({make_quantized_heads(bits, G, S, D), make_quantized_heads(bits, G, S, D)});
    store_rows(k, 0, rounded[l].keys), store_rows(v, 0, rounded[l].values);
  }
  GroupedScratch float_scratch(1, S, H, D);
  QuantizedScratch scratch(S, H, D);
  Tensor<2> out = empty(1, H * D), want = out;
  std::size_t i = 0, j = 0;
  const auto of_rounded = [&] {
    attend_quantized(row(q, 0), rounded[i++ % layers], {0, S}, row(out, 0), scratch);
  };
  const auto of_floats = [&] {
    grouped_attention_rows(q, cached_heads(floats[j++ % layers]), Mask::causal, want,
                           float_scratch);
  };
  of_rounded(), of_floats();
  const std::string what = fmt::format("attention, T=1, S={}, {} bits", S, bits);
  bench.expect_right(what, relative_error(out, want) < (bits == 8 ? 0.02 : 0.2));
  bench.against(what, of_rounded, "floats", of_floats);
}

void bench(Bench& bench) {
  for (const TensorType type : {TensorType::q4_1, TensorType::q8_0})
    for (const std::size_t T : {1, 512}) bench_product(bench, type, T);
  for (const std::size_t bits : {8, 4}) bench_cache(bench, bits);

  Random random(1);
  const Config config = preset("smollm2-135m");
  Config one = config;
  one.L = 1;
  ModelWeights weights = draw_model(one, random);
  for_each_tensor(weights, one, [](const TensorInfo& info, auto& tensor) {
    if constexpr (std::is_same_v<decltype(tensor), Weight&>)
      if (info.size() > 0)
        tensor = packed_floats(info.role == Role::embedding ? TensorType::q8_0 : TensorType::q4_1,
                               tensor.floats());
  });
  // 30 blocks in 30 places: a copy of a packed weight would share its memory.
  for (std::size_t l = 1; l < config.L; ++l) {
    weights.blocks.push_back(draw_block(config.block, random));
    for_each_tensor(weights.blocks[l], config.block, [](const TensorInfo& info, auto& tensor) {
      if constexpr (std::is_same_v<decltype(tensor), Weight&>)
        if (info.size() > 0) tensor = packed_floats(TensorType::q4_1, tensor.floats());
    });
  }
  const Model model(config, std::move(weights));
  ModelState state(config, 129);
  Tensor<1> logits = empty(config.V);
  const std::vector<int> prompt(128, 1), next = {2};
  forward(model, state, prompt, row(logits));
  bench.against_read("one token, SmolLM2-135M's sizes in Q4_1, S = 129",
                     double(bytes(model.weights())), [&] {
                       truncate(state, 128);
                       forward(model, state, next, row(logits));
                     });
}

}  // namespace t2t
