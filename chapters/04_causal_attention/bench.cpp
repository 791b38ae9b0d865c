// Softmax compared with a copy and with an in-place pass; attention compared with its two
// products alone; and attention, alone and with its four projections, compared with a recurrent
// cell of the same width.
#include "timing/bench.hpp"

#include <algorithm>

#include "04_causal_attention/fast/attention_rows.hpp"
#include "04_causal_attention/fast/softmax_rows.hpp"
#include "04_causal_attention/multi_head.hpp"
#include "04_causal_attention/recurrence/recurrence.hpp"
#include "linalg.hpp"
#include "rows.hpp"

namespace t2t {

static bool close(const Tensor<2>& got, const Tensor<2>& want) {
  return xt::amax(xt::abs(got - want))() <= 1e-5f;  // elements of size 1, sums of up to 2048
}

static void bench_softmax(Bench& bench) {
  Tensor<2> x = Random(1).normal<2>({8192, 2048});
  Tensor<2> few = xt::view(x, xt::range(0, 64), xt::all());
  const Tensor<2> want = softmax(few);
  softmax_rows(few);
  bench.expect_right("softmax_rows", close(few, want));

  const double bytes = 2.0 * double(x.size() * sizeof(float));
  bench.against_copy("softmax_rows [8192, 2048], in place", bytes, [&] { softmax_rows(x); });
  bench.against_update("softmax_rows [8192, 2048], in place", bytes, [&] { softmax_rows(x); });
}

/// The two products of every head, q·kᵀ and weights·v, for the same blocks of queries and the keys
/// that each block sees, with neither mask nor softmax between them.
static void products_alone(const Tensor<2>& q, const KeyValueHeads& heads, Mask mask,
                           Tensor<2>& out, AttentionScratch& scratch) {
  const std::size_t T = q.shape(0), D = heads.D(), blocks = (T + query_block - 1) / query_block;
  for_each_task(blocks * heads.G, q.size(), [&](std::size_t i, std::size_t thread) {
    const std::size_t h = i % heads.G, t = (blocks - 1 - i / heads.G) * query_block;
    const std::size_t count = std::min(query_block, T - t);
    const KeyValueHeads seen = cut(heads, keys_seen(t, count, T, heads.S(), mask));
    const Matrix scores{scratch.rows().row(thread).data(), count, seen.S(), seen.S()};
    matmul_bt(ConstMatrix(q).head(h, D).rows_from(t, count), seen.keys(h), scores);
    matmul(scores, seen.values(h), Matrix(out).head(h, D).rows_from(t, count));
  });
}

static void bench_attention(Bench& bench, std::size_t T) {
  constexpr std::size_t H = 9, D = 64, C = H * D;
  Random random(1);
  const Tensor<2> q = random.normal<2>({T, C}), k = random.normal<2>({T, C});
  const Tensor<2> v = random.normal<2>({T, C});
  Tensor<2> out = empty(T, C);
  AttentionScratch scratch(T, T);

  const auto attend_all = [&] {
    attention_rows(q, side_by_side(k, v, H), Mask::causal, out, scratch);
  };
  attend_all();
  const auto head = [&](const Tensor<2>& x) {
    return Tensor<2>(xt::view(x, xt::all(), xt::range(D, 2 * D)));
  };
  bench.expect_right("attention_rows",
                     close(head(out), attention(head(q), head(k), head(v), Mask::causal)));
  bench.against("attention_rows H=9 T=" + std::to_string(T) + " D=64, causal", attend_all,
                "its two products alone, same blocks",
                [&] { products_alone(q, side_by_side(k, v, H), Mask::causal, out, scratch); });

  const RecurrentCell cell = draw_recurrent_cell(C, random);
  bench.against("attention_rows H=9 T=" + std::to_string(T) + " D=64, causal", attend_all,
                "recurrence, C = 576", [&] { out = recurrence(q, cell); });

  // The same beside a whole layer of attention: the cell's time includes its product with w_x.
  const AttentionWeights weights = draw_attention_weights(C, random);
  Tensor<2> projected = empty(T, C);
  const auto layer = [&] {
    const Tensor<2> keys = matmul_bt(q, weights.w_k), values = matmul_bt(q, weights.w_v);
    attention_rows(matmul_bt(q, weights.w_q), side_by_side(keys, values, H), Mask::causal, out,
                   scratch);
    matmul_bt(out, weights.w_o, projected);
  };
  layer();
  bench.expect_right("the layer",
                     close(projected, multi_head_attention(q, weights, H, Mask::causal)));
  bench.against("a whole layer of attention, H=9 T=" + std::to_string(T) + " D=64, causal", layer,
                "recurrence, C = 576", [&] { out = recurrence(q, cell); });

  // The same queries, each of which sees at most 256 keys.
  if (T <= 256) return;
  const Mask window = Mask::sliding(256);
  const auto attend_window = [&] {
    attention_rows(q, side_by_side(k, v, H), window, out, scratch);
  };
  attend_window();
  bench.expect_right("attention_rows in a window",
                     close(head(out), attention(head(q), head(k), head(v), window)));
  bench.against("attention_rows H=9 T=" + std::to_string(T) + " D=64, window of 256", attend_window,
                "causal, without a window", attend_all);
}

void bench(Bench& bench) {
  bench_softmax(bench);
  for (const std::size_t T : {128, 512, 2048}) bench_attention(bench, T);
}

}  // namespace t2t
