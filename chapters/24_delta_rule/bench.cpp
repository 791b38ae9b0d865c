// Times the gated delta rule by length: step by step, in chunks, and attention over as many tokens
// with as many heads; one token, compared with decode over a cache; and a step of a hybrid by the
// length of the text.
#include "timing/bench.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "06_gqa/fast/grouped_rows.hpp"
#include "24_delta_rule/chunks/delta_chunks.hpp"
#include "24_delta_rule/qwen3_next/qwen3_next.hpp"
#include "random.hpp"
#include "rows.hpp"

namespace t2t {

constexpr std::size_t H = 4, D = 64;

static std::vector<DeltaTokens> heads_of(std::size_t T) {
  std::vector<DeltaTokens> heads;
  for (std::size_t h = 0; h < H; ++h) {
    Random random(h);
    heads.push_back({random.normal<2>({T, D}, 0.125f), unit_rows(random.normal<2>({T, D})),
                     random.normal<2>({T, D}), random.uniform<1>({T}, -0.1f, 0),
                     random.uniform<1>({T})});
  }
  return heads;
}

/// All heads, shared among the threads.
template <class Form>
static void for_heads(const std::vector<DeltaTokens>& heads, std::vector<Tensor<2>>& states,
                      Form form) {
  for_each_task(heads.size(), heads[0].q.size() * D,
                [&](std::size_t h, std::size_t) { form(heads[h], states[h]); });
}

static bool close(const Tensor<2>& got, const Tensor<2>& want) {
  return std::ranges::equal(got, want, [](float a, float b) { return std::abs(a - b) < 1e-4f; });
}

static void bench_text(Bench& bench, std::size_t T) {
  const std::vector<DeltaTokens> heads = heads_of(T);
  std::vector<Tensor<2>> states(H, Tensor<2>(xt::zeros<float>({D, D})));
  const auto steps = [&] {
    for_heads(heads, states, [](const DeltaTokens& tokens, Tensor<2>& state) {
      delta_recurrence(tokens, StateRule::correct, state);
    });
  };
  const auto chunks_of = [&](std::size_t c) {
    return [&, c] {
      for_heads(heads, states, [c](const DeltaTokens& tokens, Tensor<2>& state) {
        delta_chunks(tokens, StateRule::correct, c, state);
      });
    };
  };
  Tensor<2> one = xt::zeros<float>({D, D}), other = one;
  const std::string what = fmt::format("delta rule in chunks of 32, T={} H={} D={}", T, H, D);
  bench.expect_right(what, close(delta_chunks(heads[0], StateRule::correct, 32, one),
                                 delta_recurrence(heads[0], StateRule::correct, other)));
  bench.against(what, chunks_of(32), "step by step", steps);
  if (T == 2048)
    for (const std::size_t c : {16, 64})
      bench.against(what, chunks_of(32), fmt::format("in chunks of {}", c), chunks_of(c));

  const Tensor<2> q = Random(5).normal<2>({T, H * D}), k = Random(6).normal<2>({T, H * D});
  Tensor<2> out = empty(T, H * D);
  GroupedScratch scratch(T, T, H, D);
  bench.against(what, chunks_of(32), "causal attention", [&] {
    grouped_attention_rows(q, side_by_side(k, k, H), Mask::causal, out, scratch);
  });
}

static void bench_token(Bench& bench, std::size_t S) {
  const std::vector<DeltaTokens> heads = heads_of(1);
  std::vector<Tensor<2>> states(H, Tensor<2>(xt::zeros<float>({D, D})));
  const Tensor<2> q = Random(5).normal<2>({1, H * D}), k = Random(6).normal<2>({S, H * D});
  Tensor<2> out = empty(1, H * D);
  GroupedScratch scratch(1, S, H, D);
  bench.against(
      fmt::format("one token's step, H={} D={}", H, D),
      [&] {
        for_heads(heads, states, [](const DeltaTokens& tokens, Tensor<2>& state) {
          delta_recurrence(tokens, StateRule::correct, state);
        });
      },
      fmt::format("decode over {} tokens", S),
      [&] { grouped_attention_rows(q, side_by_side(k, k, H), Mask::causal, out, scratch); });
}

/// A model of 8 small blocks with little but attention and states in them, of which one in `every`
/// attends, and a text of S tokens that it has read.
struct Reading {
  Qwen3Next model;
  Qwen3NextState state;
  std::size_t S;

  Reading(std::size_t every, std::size_t S)
      : model(draw(every)), state(model.config, S + 1, 1), S(S) {
    Random random(7);
    for (KvCache& cache : state.caches)
      if (cache.keys.size() > 0)
        for (Tensor<3>* x : {&cache.keys, &cache.values})
          *x = random.normal<3>({cache.keys.shape(0), S + 1, cache.keys.shape(2)});
  }
  static Qwen3Next draw(std::size_t every) {
    Qwen3NextConfig config{};
    config.attention = {.C = 256, .H = 4, .G = 2, .D = 64, .R = 16};
    config.delta = {.C = 256, .H = 4, .D = 64, .Dv = 64, .G = 2};
    config.L = 8, config.V = 64, config.T_max = 100000, config.every = every;
    config.E = 2, config.F = 64, config.F_shared = 64, config.router.k = 1;
    Random random(1);
    return draw_qwen3_next(config, random);
  }
  Tensor<2> step() {
    state.length = S;
    for (KvCache& cache : state.caches) cache.length = S;
    const int ids[] = {1};
    return qwen3_next_logits(ids, model, state);
  }
};

static void bench_hybrid(Bench& bench, std::size_t S) {
  Reading hybrid(4, S), all(1, S);
  const std::string what = fmt::format("a step of 8 blocks, two of which attend to {} tokens", S);
  const Tensor<2> logits = hybrid.step();
  bench.expect_right(what, std::ranges::all_of(logits, [](float x) { return std::isfinite(x); }));
  bench.against(
      what, [&] { hybrid.step(); }, "all of which attend", [&] { all.step(); });
}

void bench(Bench& bench) {
  for (const std::size_t T : {256, 2048, 8192}) bench_text(bench, T);
  for (const std::size_t S : {256, 2048, 8192}) bench_token(bench, S);
  for (const std::size_t S : {256, 2048, 8192, 32768}) bench_hybrid(bench, S);
}

}  // namespace t2t
