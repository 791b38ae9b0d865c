#include "25_sinks/sink_attention.hpp"

#include <algorithm>
#include <limits>

#include "04_causal_attention/multi_head.hpp"
#include "04_causal_attention/softmax.hpp"
#include "06_gqa/grouped_query_attention.hpp"
#include "linalg.hpp"
#include "shapes.hpp"

namespace t2t {

SinkWeights softmax_with_sink(const Tensor<2>& scores, float sink) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  expect(scores.shape(1) >= 1, "S, the number of keys", "at least 1", scores.shape(1));
  expect(sink < infinity, "sink, a score", "a finite number or -infinity", sink);  // not for NaN
  Tensor<1> highest = xt::amax(scores, {1});                                       // [T]
  for (std::size_t t = 0; t < highest.size(); ++t) {
    if (sink == -infinity && all_masked(row(scores, t))) refuse_masked_row(t);
    highest(t) = std::max(highest(t), sink);
  }
  const Tensor<2> exps = xt::exp(scores - as_column(highest));  // [T, S]
  const Tensor<1> of_sink = xt::exp(sink - highest);            // [T]
  Tensor<1> sum = xt::sum(exps, {1});                           // [T]
  sum += of_sink;
  return {exps / as_column(sum), of_sink / sum};
}

Tensor<2> sink_attention(const Tensor<2>& q, const Tensor<2>& k, const Tensor<2>& v, float sink,
                         Mask mask) {
  expect_shape("v", v, {k.shape(0), k.shape(1)});
  return matmul(softmax_with_sink(attention_scores(q, k, mask), sink).keys, v);  // [T, D]
}

Tensor<2> grouped_sink_attention(const Tensor<2>& q, const Tensor<2>& k, const Tensor<2>& v,
                                 const Tensor<1>& sinks, std::size_t G, Mask mask) {
  const std::size_t H = sinks.size();
  expect_groups(H, G);
  const Tensor<3> queries = split_heads(q, H);  // [H, T, D]
  const std::size_t T = q.shape(0), S = k.shape(0), D = queries.shape(2);
  expect_shape("k", k, {S, G * D});
  expect_shape("v", v, {S, G * D});
  const Tensor<3> keys = split_heads(k, G), values = split_heads(v, G);  // [G, S, D]

  Tensor<3> heads = empty(H, T, D);  // [H, T, D]
  for (std::size_t h = 0; h < H; ++h) {
    const std::size_t g = group_of(h, H, G);
    xt::view(heads, h) = sink_attention(xt::view(queries, h), xt::view(keys, g),
                                        xt::view(values, g), sinks(h), mask);
  }
  return merge_heads(heads);  // [T, H·D]
}

}  // namespace t2t
