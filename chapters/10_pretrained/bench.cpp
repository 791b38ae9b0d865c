// Times a random model of SmolLM2-135M's sizes: decoding one token compared with reading its
// weights, and dequantizing compared with a copy.
#include "timing/bench.hpp"

#include <cmath>

#include "09_language_model/fast/forward.hpp"
#include "10_pretrained/file/dequantize.hpp"

namespace t2t {

void bench(Bench& bench) {
  // Rows of Q4_1: 20 bytes in, 128 out, for each 32 weights.
  const std::size_t rows = 4096, cols = 2048;
  std::vector<std::uint8_t> stored(rows * cols / 32 * 20, 0x11);
  Tensor<2> floats = empty(rows, cols);
  dequantize_rows(TensorType::q4_1, stored, floats);
  const float scale = half_to_float(0x1111);
  bench.expect_right("dequantize_rows", std::abs(floats(rows - 1, cols - 1) - 2 * scale) < 1e-6f);
  bench.against_copy("dequantize_rows Q4_1 [4096, 2048]",
                     double(stored.size() + floats.size() * sizeof(float)),
                     [&] { dequantize_rows(TensorType::q4_1, stored, floats); });

  Random random(1);
  const Config config = preset("smollm2-135m");
  Config one = config;
  one.L = 1;
  ModelWeights weights = draw_model(one, random);
  weights.blocks.resize(config.L, weights.blocks[0]);
  const Model model(config, std::move(weights));
  ModelState state(config, 129);
  Tensor<1> logits = empty(config.V);
  const std::vector<int> prompt(128, 1), next = {2};
  forward(model, state, prompt, row(logits));
  bench.against_read("one token, SmolLM2-135M's sizes, S = 129", double(bytes(model.weights())),
                     [&] {
                       truncate(state, 128);
                       forward(model, state, next, row(logits));
                     });
}

}  // namespace t2t
