// Times one token's attention over a long cache compared with a plain read of as many bytes, a
// prompt in one call compared with one token per call, 100 tokens with the cache compared with 100
// tokens without it, and a cache that is made once compared with one that is concatenated at every
// step.
#include "timing/bench.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "05_kv_cache/babbler/babbler.hpp"
#include "05_kv_cache/kv_cache.hpp"
#include "05_kv_cache/shows/one_by_one.hpp"

namespace t2t {

static bool close(const Tensor<2>& got, const Tensor<2>& want) {
  return std::ranges::equal(got, want, [](float a, float b) { return std::abs(a - b) < 1e-4f; });
}

static void bench_decode(Bench& bench) {
  const std::size_t G = 9, S = 8192, D = 64;
  Random random(1);
  const Tensor<2> k = random.normal<2>({S, G * D}), v = random.normal<2>({S, G * D});
  const Tensor<2> q = random.normal<2>({1, G * D});
  KvCache cache = make_kv_cache(G, S, D);
  append(cache, k, v);

  AttentionScratch scratch(1, S);
  Tensor<2> out = empty(1, G * D), want = empty(1, G * D);
  const auto work = [&] { attention_rows(q, cached_heads(cache), Mask::causal, out, scratch); };
  work();
  attention_rows(q, side_by_side(k, v, G), Mask::causal, want, scratch);
  bench.expect_right("attention over a cache", close(out, want));
  bench.against_read("attention over a cache, T=1 [9, 8192, 64]", double(bytes(cache)), work);
}

/// 512 tokens into an empty cache, in one call and one by one, and attention without a cache.
static void bench_prompt(Bench& bench) {
  const std::size_t G = 9, T = 512, D = 64;
  Random random(1);
  const auto draw = [&] { return random.normal<2>({T, G * D}); };
  const Tensor<2> q = draw(), k = draw(), v = draw();
  KvCache cache = make_kv_cache(G, T, D);
  AttentionScratch scratch(T, T);
  Tensor<2> out = empty(T, G * D), one_by_one = empty(T, G * D), bare = empty(T, G * D);
  const auto through = [&](std::size_t chunk, Tensor<2>& to) {
    reset(cache);
    for (std::size_t t = 0; t < T; t += chunk) {
      append(cache, ConstMatrix(k).rows_from(t, chunk), ConstMatrix(v).rows_from(t, chunk));
      attention_rows(ConstMatrix(q).rows_from(t, chunk), cached_heads(cache), Mask::causal,
                     Matrix(to).rows_from(t, chunk), scratch);
    }
  };
  const auto whole = [&] { through(T, out); };
  const auto singly = [&] { through(1, one_by_one); };
  const auto uncached = [&] {
    attention_rows(q, side_by_side(k, v, G), Mask::causal, bare, scratch);
  };
  whole(), singly(), uncached();
  bench.expect_right("cached prefill", close(out, bare) && close(one_by_one, bare));
  bench.against("append and attend T=512 [9, 512, 64]", whole, "token by token", singly);
  bench.against("append and attend T=512 [9, 512, 64]", whole, "attention_rows alone", uncached);
}

/// 100 tokens from one byte on, one per step: for the claim that a cache makes them 50.5 times
/// faster.
static void bench_generation(Bench& bench, std::size_t C, std::size_t H) {
  Random random(1);
  Babbler babbler = draw_babbler(C, H, 100, random);
  KvCache cache = make_kv_cache(H, 100, C / H);
  std::vector<Step> steps, steps_without;
  const auto with = [&] {
    reset(cache);
    steps = generate_with(babbler, {'A'}, 100, cache);
  };
  const auto without = [&] { steps_without = generate_without(babbler, {'A'}, 100); };
  with(), without();
  bench.expect_right("generation with a cache",
                     std::ranges::equal(steps, steps_without, {}, &Step::token, &Step::token));
  bench.against("100 tokens, C=" + std::to_string(C) + " H=" + std::to_string(H), with,
                "without a cache", without);
}

/// A cache made once compared with one that is concatenated at each of T steps.
static void bench_concatenated(Bench& bench, std::size_t T) {
  const std::size_t G = 9, D = 64;
  const Tensor<2> x = Random(1).normal<2>({T, G * D});
  AttentionScratch scratch(1, T);
  bench.expect_right("a concatenated cache",
                     decode_in_place(x, G, scratch) == decode_concatenated(x, G, scratch));
  bench.against(
      "one by one, made once, T=" + std::to_string(T) + " [9, T, 64]",
      [&] { decode_in_place(x, G, scratch); }, "concatenated at every step",
      [&] { decode_concatenated(x, G, scratch); });
}

void bench(Bench& bench) {
  bench_decode(bench);
  bench_generation(bench, 256, 16);
  bench_generation(bench, 768, 12);
  bench_prompt(bench);
  for (const std::size_t T : {128, 512, 2048}) bench_concatenated(bench, T);
}

}  // namespace t2t
