// Times one block of SmolLM2-135M's sizes: a prompt compared with its matrix products alone, one
// token compared with a plain read of the weights.
#include "timing/bench.hpp"

#include <algorithm>
#include <cmath>

#include "06_gqa/grouped_query_attention.hpp"
#include "08_block/block.hpp"
#include "08_block/fast/cached_attention.hpp"
#include "linalg.hpp"

namespace t2t {

namespace {

constexpr std::size_t C = 576, H = 9, G = 3, D = 64, F = 1536, T = 512, L = 30;

/// The matrix products of a block, without anything between them.
struct Products {
  Tensor<2> q = empty(T, H*D), k = empty(T, G*D), v = empty(T, G*D), o = empty(T, C);
  Tensor<2> gate = empty(T, F), up = empty(T, F), down = empty(T, C);
  Tensor<3> scores = empty(H, T, T);

  /// The seven products with weights, for the first `tokens` rows of x.
  void with_weights(ConstMatrix x, const BlockWeights& w, std::size_t tokens) {
    const auto first = [&](Tensor<2>& y) { return Matrix(y).rows_from(0, tokens); };
    matmul_bt(x, w.w_q, first(q));
    matmul_bt(x, w.w_k, first(k));
    matmul_bt(x, w.w_v, first(v));
    matmul_bt(first(q), w.w_o, first(o));
    matmul_bt(first(o), w.feed_forward.w_gate, first(gate));
    matmul_bt(first(o), w.feed_forward.w_up, first(up));
    matmul_bt(first(up), w.feed_forward.w_down, first(down));
  }
  /// q·kᵀ and weights·v of every head, for all T x T pairs: without a mask.
  void of_attention() {
    for (std::size_t h = 0; h < H; ++h) {
      const std::size_t g = group_of(h, H, G);
      matmul_bt(Matrix(q).head(h, D), Matrix(k).head(g, D), matrix(scores, h));
      matmul(matrix(scores, h), Matrix(v).head(g, D), Matrix(o).head(h, D));
    }
  }
};

bool near(const Tensor<2>& got, const Tensor<2>& want, float bound) {
  return std::ranges::equal(got, want, [&](float a, float b) { return std::abs(a - b) <= bound; });
}

}  // namespace

void bench(Bench& bench) {
  Random random(1);
  const BlockSettings settings = llama_style(C, H, G, F);
  const std::vector<BlockWeights> layers(L, draw_block(settings, random, 0.1f));
  const Tensor<2> input = random.normal<2>({T, C});
  const std::vector<BlockSettings> all_settings(L, settings);
  CachedAttention attention(all_settings, T + 1, T);
  const BlockFunctions functions = {.attention = std::ref(attention)};
  BlockScratch scratch(settings, T);
  std::vector<Block> blocks;
  for (std::size_t l = 0; l < L; ++l) blocks.emplace_back(settings, layers[l], l);
  Products products;
  Tensor<2> x = input;

  const Run prompt{0, 0, T}, next{0, T, 1};
  const auto prefill = [&] { block_rows(x, prompt, blocks[0], functions, scratch); };
  prefill();
  const RopeTable table = block_rope_table(settings, T);
  bench.expect_right("block_rows", near(x, block(input, layers[0], settings, table), 1e-4f));
  // x grows a little with every call; the time does not depend on its values.
  bench.against("block_rows, T = 512", prefill, "its bare matrix products", [&] {
    products.with_weights(input, layers[0], T);
    products.of_attention();
  });

  // One token goes through all layers: each weight is read once, and together they fit no cache.
  const double bytes = double(L * parameter_count(layers[0]) * sizeof(float));
  const ConstMatrix token = ConstMatrix(input).rows_from(0, 1);
  const double cached = double(L * 2 * G * T * D * sizeof(float));
  bench.against_read("a token's seven products, 30 blocks", bytes, [&] {
    for (const BlockWeights& weights : layers) products.with_weights(token, weights, 1);
  });
  x = input;
  for (const Block& block : blocks) block_rows(x, prompt, block, functions, scratch);
  x = input;
  bench.against_read("block_rows, one token, 30 blocks, S = 513", bytes + cached, [&] {
    for (const Block& block : blocks)
      block_rows(Matrix(x).rows_from(0, 1), next, block, functions, scratch);
  });
}

}  // namespace t2t
