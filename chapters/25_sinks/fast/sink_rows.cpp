#include "25_sinks/fast/sink_rows.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

#include "06_gqa/fast/decode_attention.hpp"
#include "rows.hpp"
#include "shapes.hpp"

namespace t2t {

void sink_attention_rows(ConstMatrix q, const KeyValueHeads& heads, const ScoreRule& rule,
                         ConstRow sinks, Matrix out, Tensor<2>& scores) {
  expect_grouped(q, heads, rule.mask);
  const std::size_t T = q.rows, S = heads.S(), D = heads.D(), H = q.cols / D, N = H / heads.G;
  expect_shape("out", out, {T, H * D});
  expect_shape("sinks", sinks, {H});
  if (scores.shape(0) < thread_count() || scores.shape(1) < N * S)
    throw std::invalid_argument(fmt::format("scores: wanted room for [{}, {}], got [{}, {}]",
                                            thread_count(), N * S, scores.shape(0),
                                            scores.shape(1)));
  for_each_task(T * heads.G, N * S * D, [&](std::size_t i, std::size_t thread) {
    const std::size_t t = i / heads.G, g = i % heads.G, first = g * N * D;
    const KeyRange seen = keys_seen(t, T, S, rule.mask);
    const ConstMatrix queries(q.row(t).data() + first, N, D, D);  // [N, D]
    const Matrix results(out.row(t).data() + first, N, D, D);     // [N, D]
    float* const room = row(scores, thread).data();
    float sums[64];  // of up to 64 heads at a time: the log-sums, [N, 1]
    for (std::size_t n = 0; n < N; n += 64) {
      const std::size_t count = std::min<std::size_t>(64, N - n);
      attend_stretch(queries.rows_from(n, count), heads.keys(g).rows_from(seen.begin, seen.size()),
                     heads.values(g).rows_from(seen.begin, seen.size()),
                     {room, count, seen.size(), seen.size()}, results.rows_from(n, count),
                     {sums, count, 1, 1}, rule);
      for (std::size_t m = 0; m < count; ++m) {
        const float share = 1 / (1 + std::exp(sinks[g * N + n + m] - sums[m]));  // of the keys
        for (float& number : results.row(n + m)) number *= share;
      }
    }
  });
}

LayerKernel sink_kernel(std::span<const BlockSettings> layers, std::vector<Tensor<1>> sinks,
                        std::size_t S) {
  expect(sinks.size() == layers.size(), "sinks, of each layer",
         fmt::format("L = {}", layers.size()), sinks.size());
  for (std::size_t l = 0; l < layers.size(); ++l) {
    expect_shape(fmt::format("layer {}: sinks", l), row(std::as_const(sinks[l])), {layers[l].H});
    for (const float sink : sinks[l])
      expect(sink < std::numeric_limits<float>::infinity(), "sink, a score",
             "a finite number or -infinity", sink);  // not for NaN
  }
  const std::size_t N = widest(layers, [](const BlockSettings& s) { return s.H / s.G; });
  return [sinks = std::move(sinks), scores = Tensor<2>(empty(thread_count(), N * S))](
             std::size_t layer, ConstMatrix q, const KeyValueHeads& heads, const ScoreRule& rule,
             Matrix out) mutable {
    sink_attention_rows(q, heads, rule, row(std::as_const(sinks[layer])), out, scores);
  };
}

}  // namespace t2t
