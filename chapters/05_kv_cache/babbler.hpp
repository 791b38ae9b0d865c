// A babbler: text in, one byte after the other out, through one attention layer of random weights.
//
//   logits = unembed(attention(embed(ids)))       next = the printable byte with the highest logit
//
// It has learned nothing, so it babbles; but what it computes for a token is what a trained layer
// computes, with the cache and without. For the programs of this chapter only. Chapter 09 generates
// with a model.
#pragma once

#include <algorithm>
#include <chrono>
#include <span>
#include <vector>

#include "01_embedding/embedding.hpp"
#include "05_kv_cache/kv_cache.hpp"
#include "linalg.hpp"

namespace t2t {

struct Babbler {
  Tensor<2> table;           // [V, C]
  AttentionWeights weights;  // [C, C] each
  RopeTable rope;            // [S, D/2] each
  std::size_t H;
  AttentionScratch scratch;  // room for S queries over S keys

  Babbler(std::size_t C, std::size_t H, std::size_t S, Random& random)
      : table(random.normal<2>({256, C}, 1)),
        weights(draw_attention_weights(C, random)),
        rope(rope_table(S, rope_frequencies(C / H))),
        H(H),
        scratch(S, S) {}
  std::size_t width() const { return table.shape(1); }
};

/// Without a cache: all T tokens through the whole layer, as a stack needs them, whose next layer
/// reads every token. Returns the last one's logits, [1, V].
inline Tensor<2> logits_without(Babbler& babbler, std::span<const int> ids) {  // [T]
  const std::size_t T = ids.size(), C = babbler.width(), D = C / babbler.H;
  Tensor<2> x = empty(T, C), mixed = empty(T, C);
  embed_rows(ids, babbler.table, x);
  Tensor<2> q = matmul_bt(x, babbler.weights.w_q);        // [T, C]
  Tensor<2> k = matmul_bt(x, babbler.weights.w_k);        // [T, C]
  const Tensor<2> v = matmul_bt(x, babbler.weights.w_v);  // [T, C]
  rope_rows(q, D, babbler.rope, 0, Pairing::halves);
  rope_rows(k, D, babbler.rope, 0, Pairing::halves);
  attention_rows(q, side_by_side(k, v, babbler.H), Mask::causal, mixed, babbler.scratch);
  const Tensor<2> y = matmul_bt(mixed, babbler.weights.w_o);                   // [T, C]
  return unembed(xt::view(y, xt::range(T - 1, T), xt::all()), babbler.table);  // [1, V]
}

/// With it: the T new tokens only. The cache says where they stand.
inline Tensor<2> logits_with(Babbler& babbler, std::span<const int> ids, KvCache& cache) {  // [T]
  const std::size_t T = ids.size(), C = babbler.width(), D = C / babbler.H;
  const std::size_t position = next_position(cache);
  Tensor<2> x = empty(T, C), mixed = empty(T, C);
  embed_rows(ids, babbler.table, x);
  Tensor<2> q = matmul_bt(x, babbler.weights.w_q);        // [T, C]
  const Tensor<2> k = matmul_bt(x, babbler.weights.w_k);  // [T, C]
  const Tensor<2> v = matmul_bt(x, babbler.weights.w_v);  // [T, C]
  append_turned(cache, k, v, babbler.rope, Pairing::halves);
  rope_rows(q, D, babbler.rope, position, Pairing::halves);
  attention_rows(q, cached_heads(cache), Mask::causal, mixed, babbler.scratch);
  const Tensor<2> y = matmul_bt(mixed, babbler.weights.w_o);                   // [T, C]
  return unembed(xt::view(y, xt::range(T - 1, T), xt::all()), babbler.table);  // [1, V]
}

/// The printable byte, ' ' to '~', with the highest logit.
inline int next_byte(const Tensor<2>& logits) {  // [1, 256]
  const ConstRow printable = row(logits, 0).subspan(' ', '~' - ' ' + 1);
  return ' ' + int(std::ranges::max_element(printable) - printable.begin());
}

struct Step {
  int token;
  std::size_t kv_rows;  // tokens whose keys and values were computed for this one
  double seconds;       // since the first step began
};

/// `count` bytes after the prompt. Each step hands `logits_of` what it must compute keys and values
/// for: all tokens so far, or (new_only) those that came since the last step.
template <class Logits>
std::vector<Step> generate(std::vector<int> ids, std::size_t count, bool new_only,
                           Logits logits_of) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  std::vector<Step> steps;
  std::size_t done = 0;  // tokens that have been through the layer
  for (std::size_t i = 0; i < count; ++i) {
    const std::span<const int> given = std::span<const int>(ids).subspan(new_only ? done : 0);
    const int token = next_byte(logits_of(given));
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    steps.push_back({token, given.size(), seconds});
    done = ids.size();
    ids.push_back(token);
  }
  return steps;
}

inline std::vector<Step> generate_without(Babbler& babbler, const std::vector<int>& prompt,
                                          std::size_t count) {
  return generate(prompt, count, false,
                  [&](std::span<const int> ids) { return logits_without(babbler, ids); });
}
inline std::vector<Step> generate_with(Babbler& babbler, const std::vector<int>& prompt,
                                       std::size_t count, KvCache& cache) {
  return generate(prompt, count, true,
                  [&](std::span<const int> ids) { return logits_with(babbler, ids, cache); });
}

/// The steps of three equal runs, each with its shortest time.
template <class Run>
std::vector<Step> fastest_of_three(Run run) {
  std::vector<Step> fastest = run();
  for (int i = 1; i < 3; ++i) {
    const std::vector<Step> again = run();
    for (std::size_t t = 0; t < fastest.size(); ++t)
      fastest[t].seconds = std::min(fastest[t].seconds, again[t].seconds);
  }
  return fastest;
}

}  // namespace t2t
