// A model of SmolLM2-135M's sizes: a prompt compared with its products with weights, one token
// compared with a read of the weights, the cache compared with none, several sequences in one call,
// and sampling compared with the head's product.
#include "timing/bench.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "09_language_model/accounts/accounts.hpp"
#include "09_language_model/fast/forward.hpp"
#include "09_language_model/sampling.hpp"
#include "linalg.hpp"

namespace t2t {

namespace {

/// One block is drawn, the others are copies of it in memory of their own: the time does not depend
/// on the values, and drawing 135 million would take longer than the rest of the benchmark.
ModelWeights thirty_blocks(const Config& config, Random& random) {
  Config one = config;
  one.L = 1;
  ModelWeights weights = draw_model(one, random);
  weights.blocks.resize(config.L, weights.blocks[0]);
  return weights;
}

/// The seven products with weights of every block for T tokens, and nothing else.
struct Products {
  Tensor<2> x, wide;  // [T, C], [T, F]
  Products(const Config& c, std::size_t T, Random& random)
      : x(random.normal<2>({T, c.block.C})), wide(random.normal<2>({T, c.block.F})) {}

  void operator()(const ModelWeights& weights) {
    const std::size_t T = x.shape(0);
    for (const BlockWeights& w : weights.blocks) {
      for (const Weight* projection : {&w.w_q, &w.w_k, &w.w_v, &w.w_o})
        matmul_bt(x, *projection, Matrix(wide).cols_from(0, projection->rows()));
      matmul_bt(x, w.feed_forward.w_gate, wide);
      matmul_bt(x, w.feed_forward.w_up, wide);
      matmul_bt(wide, w.feed_forward.w_down, {out.data(), T, x.shape(1), x.shape(1)});
    }
  }
  std::vector<float> out = std::vector<float>(x.size());
};

/// What the cache saves in a whole model: four tokens after a prompt, each read alone, compared
/// with reading the whole text anew for each.
void bench_cache(Bench& bench, const Model& model) {
  const std::size_t T = 128, more = 4;
  ModelState state(model.config(), T + more);
  const std::vector<int> ids(T + more, 7);
  Tensor<1> logits = empty(model.config().V), anew = logits;
  forward(model, state, std::span(ids).first(T), row(logits));
  const auto with_cache = [&] {
    truncate(state, T);
    for (std::size_t n = 0; n < more; ++n)
      forward(model, state, std::span(ids).subspan(T + n, 1), row(logits));
  };
  const auto without = [&] {
    for (std::size_t n = 1; n <= more; ++n) {
      reset(state);
      forward(model, state, std::span(ids).first(T + n), row(anew));
    }
  };
  with_cache(), without();
  bench.expect_right("the cache", std::ranges::equal(logits, anew, [](float a, float b) {
                       return std::abs(a - b) <= 1e-4f;
                     }));
  bench.against("4 tokens after 128, with the cache", with_cache, "the whole text anew for each",
                without);
}

/// Eight sequences in one call: one more token of each, compared with one call for each sequence;
/// and prompts of unequal length, compared with the same prompts padded to the longest.
void bench_sequences(Bench& bench, const Model& model) {
  const std::size_t sequences = 8, S = 128, V = model.config().V;
  ModelState state(model.config(), S + 1, {.sequences = sequences});
  Tensor<2> logits = empty(sequences, V), alone = empty(sequences, V);
  const std::vector<int> ids(S, 7);
  std::vector<MoreTokens> next, prompts, padded;
  for (std::size_t i = 0; i < sequences; ++i) {
    next.push_back({i, std::span(ids).first(1)});
    prompts.push_back({i, std::span(ids).first((i + 1) * S / sequences)});  // 16, 32 … 128 tokens
    padded.push_back({i, ids});
  }
  const auto each_at = [&](std::size_t length) {
    for (std::size_t i = 0; i < sequences; ++i) truncate(state, length, i);
  };
  forward(model, state, padded, logits);

  const auto together = [&] {
    each_at(S);
    forward(model, state, next, logits);
  };
  const auto one_by_one = [&] {
    each_at(S);
    for (std::size_t i = 0; i < sequences; ++i)
      forward(model, state, std::span(next).subspan(i, 1), Matrix(alone).rows_from(i, 1));
  };
  together(), one_by_one();
  bench.expect_right("texts together", std::ranges::equal(logits, alone, [](float a, float b) {
                       return std::abs(a - b) <= 1e-4f;
                     }));
  bench.against("8 texts, a token each, S = 129, in one call", together, "one text after the other",
                one_by_one);
  const auto prompt = [&](const std::vector<MoreTokens>& more) {
    each_at(0);
    forward(model, state, more, logits);
  };
  bench.against(
      "8 prompts of 16 to 128 tokens, in one call", [&] { prompt(prompts); }, "padded to 128",
      [&] { prompt(padded); });
}

}  // namespace

void bench(Bench& bench) {
  Random random(1);
  const Config config = preset("smollm2-135m");
  const Model model(config, thirty_blocks(config, random));
  const std::size_t T = 512;
  ModelState state(config, T + 1);
  Tensor<1> logits = empty(config.V);
  std::vector<int> ids;
  for (std::size_t t = 0; t < T; ++t) ids.push_back(int(t * t % config.V));

  // One token after a prompt must give the logits of the prompt with that token.
  Tensor<1> at_once = empty(config.V);
  const std::span<const int> few = std::span<const int>(ids).first(9);
  forward(model, state, few, row(at_once));
  reset(state);
  forward(model, state, few.first(8), row(logits));
  forward(model, state, few.last(1), row(logits));
  bench.expect_right("forward", std::ranges::equal(logits, at_once, [](float a, float b) {
                       return std::abs(a - b) <= 1e-4f;
                     }));

  Products products(config, T, random);
  bench.against(
      "forward, smollm2-135m, T = 512",
      [&] {
        reset(state);
        forward(model, state, ids, row(logits));
      },
      "its products with weights", [&] { products(model.weights()); });

  reset(state);
  forward(model, state, ids, row(logits));
  const InferenceMemory memory = inference_memory(config, T + 1, sizeof(float));
  bench.against_read("forward, smollm2-135m, one token, S = 513", memory.weights + memory.cache,
                     [&] {
                       truncate(state, T);
                       forward(model, state, std::span(ids).first(1), row(logits));
                     });

  bench_cache(bench, model);
  bench_sequences(bench, model);

  // Sampling is to take little time compared with the head's product.
  SamplingScratch scratch(config.V);
  Tensor<1> filtered = logits, x = empty(config.block.C), out = empty(config.V);
  x.fill(1);
  bench.against(
      "top-k 40, top-p 0.9 and draw, V = 49152",
      [&] {
        std::ranges::copy(logits, filtered.begin());
        next_token(row(filtered), {.temperature = 0.7f, .top_k = 40, .top_p = 0.9f}, random,
                   scratch);
      },
      "the head's product", [&] { matvec(model.head().floats(), row(x), row(out)); });
}

}  // namespace t2t
