// The look-up compared with a copy of as many bytes, the look-up beside the one-hot product, and
// one token's logits compared with a plain read of the table.
#include "timing/bench.hpp"

#include <algorithm>
#include <cmath>

#include "01_embedding/embedding.hpp"
#include "01_embedding/samples.hpp"

namespace t2t {

static void bench_look_up(Bench& bench) {
  const std::size_t T = 32768, V = 32000, C = 1024;
  Random random(1);
  const std::vector<int> ids = scattered_ids(T, V, random);  // [T]
  Tensor<2> table = empty(V, C), x = empty(T, C);
  for (std::size_t v = 0; v < V; ++v) std::ranges::fill(row(table, v), float(v));

  const auto work = [&] { embed_rows(ids, table, x); };
  work();
  bool right = true;
  for (std::size_t t = 0; t < T; ++t)
    right = right && x(t, 0) == float(ids[t]) && x(t, C - 1) == float(ids[t]);
  bench.expect_right("embed_rows", right);
  bench.against_copy("embed_rows T=32768 V=32000 C=1024", 2.0 * T * C * sizeof(float), work);
}

static void bench_one_hot(Bench& bench) {
  const std::size_t T = 64, V = 8192, C = 256;
  Random random(1);
  const std::vector<int> ids = scattered_ids(T, V, random);  // [T]
  const Tensor<2> table = embedding_table(V, C, random);
  Tensor<2> x = empty(T, C), product;
  const auto look_up = [&] { embed_rows(ids, table, x); };
  const auto formula = [&] { product = embed(ids, table); };
  look_up(), formula();
  bench.expect_right("embed_rows", x == product);
  bench.against("embed_rows T=64 V=8192 C=256", look_up, "the one-hot product", formula);
}

static void bench_logits(Bench& bench) {
  const std::size_t V = 49152, C = 2048;  // 403 MB
  Random random(1);
  const Tensor<2> table = xt::ones<float>({V, C}), x = random.uniform<2>({1, C});
  Tensor<2> logits;
  const auto work = [&] { logits = unembed(x, table); };
  work();
  double want = 0;
  for (const float value : x) want += value;
  bench.expect_right("unembed", std::abs(logits(0, V - 1) - want) < 1e-2);
  bench.against_read("unembed T=1 V=49152 C=2048", double(V * C * sizeof(float)), work);
}

void bench(Bench& bench) {
  bench_look_up(bench);
  bench_one_hot(bench);
  bench_logits(bench);
}

}  // namespace t2t
