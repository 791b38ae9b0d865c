// Softmax beside a copy and an update in place, attention beside the products it can't do without,
// and beside recurrence.
#include "bench.hpp"

#include "04_causal_attention/multi_head.hpp"
#include "04_causal_attention/recurrence.hpp"
#include "04_causal_attention/softmax.hpp"
#include "linalg.hpp"
#include "rows.hpp"

namespace t2t {

static bool close(const Tensor<2>& got, const Tensor<2>& want) {
  return xt::amax(xt::abs(got - want))() <= 1e-5f;  // numbers of size 1, sums of up to 2048
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

/// q·kᵀ and w·v of every head, nothing hidden and no softmax between, shared over the cores too.
static void bare_products(const Tensor<2>& q, const Tensor<2>& k, const Tensor<2>& v, std::size_t H,
                          Tensor<3>& scores, Tensor<2>& out) {
  const std::size_t D = q.shape(1) / H;
  for_each_task(H, q.size(), [&](std::size_t h, std::size_t thread) {
    matmul_bt(ConstMatrix(q).head(h, D), ConstMatrix(k).head(h, D), matrix(scores, thread));
    matmul(matrix(scores, thread), ConstMatrix(v).head(h, D), Matrix(out).head(h, D));
  });
}

static void bench_attention(Bench& bench, std::size_t T) {
  constexpr std::size_t H = 9, D = 64, C = H * D;
  Random random(1);
  const Tensor<2> q = random.normal<2>({T, C}), k = random.normal<2>({T, C});
  const Tensor<2> v = random.normal<2>({T, C});
  Tensor<2> out = empty(T, C);
  Tensor<3> scores = empty(thread_count(), T, T);
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
                "its bare products, unmasked", [&] { bare_products(q, k, v, H, scores, out); });

  const RecurrentCell cell = draw_recurrent_cell(C, random);
  bench.against("attention_rows H=9 T=" + std::to_string(T) + " D=64, causal", attend_all,
                "recurrence, C = 576", [&] { out = recurrence(q, cell); });

  // A window's worth: the same queries, but each sees no more than 256 keys.
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
