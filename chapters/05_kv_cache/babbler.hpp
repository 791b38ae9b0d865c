// A babbler: a model of one attention layer with random weights, which continues a text by bytes.
//
//   logits = unembed(attention(embed(ids)))       next = the printable byte with the highest logit
//
// It has learned nothing, so what it writes is babble. It does the same work for a token as a
// trained layer of its size, with the cache and without. It is for this chapter's program and bench
// only; chapter 09 generates text with a whole model.
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
  std::size_t H;             // heads, each with keys of its own: G = H
  AttentionScratch scratch;  // for calls of up to S queries over S keys

  Babbler(std::size_t C, std::size_t H, std::size_t S, Random& random)
      : table(random.normal<2>({256, C}, 1)),
        weights(draw_attention_weights(C, random)),
        rope(rope_table(S, rope_frequencies(C / H))),
        H(H),
        scratch(S, S) {}
  std::size_t width() const { return table.shape(1); }
};

/// Without a cache: the text's T tokens all go through the layer. (Only the last token's output is
/// used here, but in a model of several layers the next layer needs the outputs of all.) Returns
/// the last token's logits, [1, V].
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

/// With a cache: only the T new tokens go through the layer, at the positions after those that the
/// cache holds. Returns the last token's logits, [1, V].
inline Tensor<2> logits_with(Babbler& babbler, std::span<const int> ids, KvCache& cache) {  // [T]
  const std::size_t T = ids.size(), C = babbler.width(), D = C / babbler.H;
  const std::size_t position = next_position(cache);  // of the first new token: append changes it
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

/// One step of a generation.
struct Step {
  int token;
  std::size_t kv_rows;  // tokens whose keys and values this step computed
  double seconds;       // from the first step's start to this one's end
};

inline double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// `count` bytes after the prompt, without a cache: each step computes the whole text again.
inline std::vector<Step> generate_without(Babbler& babbler, std::vector<int> ids,
                                          std::size_t count) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<Step> steps;
  for (std::size_t i = 0; i < count; ++i) {
    const int token = next_byte(logits_without(babbler, ids));
    steps.push_back({token, ids.size(), seconds_since(start)});
    ids.push_back(token);
  }
  return steps;
}

/// `count` bytes after the prompt, with an empty cache to begin with. The first call is the
/// prefill: it hands over the whole prompt. Each later call is a decode step: it hands over the one
/// token that the cache does not hold yet.
inline std::vector<Step> generate_with(Babbler& babbler, std::vector<int> ids, std::size_t count,
                                       KvCache& cache) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<Step> steps;
  for (std::size_t i = 0; i < count; ++i) {
    const int token = next_byte(logits_with(babbler, ids, cache));
    steps.push_back({token, ids.size(), seconds_since(start)});
    ids = {token};
  }
  return steps;
}

/// Runs three times the same steps and returns them, each with the shortest of its three times.
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
