#include "05_kv_cache/babbler/babbler.hpp"

#include <algorithm>
#include <utility>

#include "01_embedding/embedding.hpp"
#include "03_rope/fast/rope_rows.hpp"
#include "linalg.hpp"

namespace t2t {

Babbler draw_babbler(std::size_t C, std::size_t H, std::size_t S, Random& random) {
  Tensor<2> table = random.normal<2>({256, C}, 1);
  return {std::move(table), draw_attention_weights(C, random),
          rope_table(S, rope_frequencies(C / H)), H, AttentionScratch(S, S)};
}

Tensor<2> logits_without(Babbler& babbler, std::span<const int> ids) {
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

Tensor<2> logits_with(Babbler& babbler, std::span<const int> ids, KvCache& cache) {
  const std::size_t T = ids.size(), C = babbler.width(), D = C / babbler.H;
  const std::size_t position = cache.length;  // read before append raises length
  Tensor<2> x = empty(T, C), mixed = empty(T, C);
  embed_rows(ids, babbler.table, x);
  Tensor<2> q = matmul_bt(x, babbler.weights.w_q);        // [T, C]
  const Tensor<2> k = matmul_bt(x, babbler.weights.w_k);  // [T, C]
  const Tensor<2> v = matmul_bt(x, babbler.weights.w_v);  // [T, C]
  append_rotated(cache, k, v, babbler.rope, Pairing::halves);
  rope_rows(q, D, babbler.rope, position, Pairing::halves);
  attention_rows(q, cached_heads(cache), Mask::causal, mixed, babbler.scratch);
  const Tensor<2> y = matmul_bt(mixed, babbler.weights.w_o);                   // [T, C]
  return unembed(xt::view(y, xt::range(T - 1, T), xt::all()), babbler.table);  // [1, V]
}

int next_byte(const Tensor<2>& logits) {
  return int(std::max_element(logits.data() + ' ', logits.data() + '~' + 1) - logits.data());
}

std::vector<Step> generate_without(Babbler& babbler, std::vector<int> ids, std::size_t count) {
  std::vector<Step> steps;
  for (std::size_t i = 0; i < count; ++i) {
    const int token = next_byte(logits_without(babbler, ids));
    steps.push_back({token, ids.size()});
    ids.push_back(token);
  }
  return steps;
}

std::vector<Step> generate_with(Babbler& babbler, std::vector<int> ids, std::size_t count,
                                KvCache& cache) {
  std::vector<Step> steps;
  for (std::size_t i = 0; i < count; ++i) {
    const int token = next_byte(logits_with(babbler, ids, cache));
    steps.push_back({token, ids.size()});
    ids = {token};
  }
  return steps;
}

}  // namespace t2t
