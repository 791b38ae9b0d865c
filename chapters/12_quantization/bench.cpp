// Times a product with packed weights beside the same product of floats, and decoding one token of
// a model of SmolLM2-135M's sizes beside reading its packed weights.
#include "bench.hpp"

#include <fmt/core.h>

#include <cmath>

#include "09_language_model/forward.hpp"
#include "12_quantization/packed_weight.hpp"
#include "linalg.hpp"

namespace t2t {

static bool close(const Tensor<2>& got, const Tensor<2>& want) {
  double apart = 0, all = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    apart += std::pow(double(got.data()[i]) - want.data()[i], 2);
    all += std::pow(double(want.data()[i]), 2);
  }
  return apart < 0.01 * 0.01 * all;  // activations rounded to 8 bits
}

static void bench_product(Bench& bench, TensorType type, std::size_t T) {
  const std::size_t rows = 1536, cols = 576;
  const Weight packed = packed_floats(type, Random(1).normal<2>({rows, cols}));
  Tensor<2> floats = empty(rows, cols);
  for (std::size_t r = 0; r < rows; ++r) packed.row(r, row(floats, r));
  const Tensor<2> x = Random(2).normal<2>({T, cols});
  Tensor<2> y = empty(T, rows), want = empty(T, rows);
  const auto of_packed = [&] { matmul_bt(x, packed, y); };
  const auto of_floats = [&] { matmul_bt(x, ConstMatrix(floats), want); };
  of_packed(), of_floats();
  const std::string what = fmt::format("{} [1536, 576], T={}", type_name(type), T);
  bench.expect_right(what, close(y, want));
  bench.against(what, of_packed, "floats", of_floats);
}

void bench(Bench& bench) {
  for (const TensorType type : {TensorType::q4_1, TensorType::q8_0})
    for (const std::size_t T : {1, 512}) bench_product(bench, type, T);

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
