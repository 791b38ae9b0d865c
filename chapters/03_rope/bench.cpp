// Rotating a long prompt's queries in place, compared with an in-place pass over as many bytes; and
// what other encodings of positions add to a layer, compared with what RoPE adds to it.
#include "timing/bench.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "03_rope/fast/rope_rows.hpp"
#include "03_rope/positions/positions.hpp"
#include "linalg.hpp"
#include "random.hpp"

namespace t2t {

/// Compares the row kernel with the reference on a few rows: what is timed must be right.
static bool agrees(std::size_t D, const RopeTable& table, Pairing pairing) {
  Random random(1);
  const Tensor<2> x = random.normal<2>({4, 2 * D});  // [T, H·D]
  const Tensor<2> want = rope(x, D, table, 5, pairing);
  Tensor<2> got = x;
  rope_rows(got, D, table, 5, pairing);
  return std::ranges::equal(got, want, [](float a, float b) { return std::abs(a - b) < 1e-5f; });
}

/// The work that is added to one layer's attention: RoPE rotates queries and keys, the relative
/// encodings add a bias to each score. ALiBi's and T5's biases are the same in all layers, so they
/// are computed beforehand; Shaw's depend on the layer's queries.
static void bench_encodings(Bench& bench) {
  const std::size_t T = 1024, H = 8, D = 64, K = 128;
  Random random(1);
  const RopeTable table = rope_table(T, rope_frequencies(D));
  const Tensor<2> vectors = random.normal<2>({K + 1, D});
  Tensor<2> q = random.normal<2>({T, H * D}), k = q;
  Tensor<2> scores = xt::zeros<float>({H * T, T});
  const auto rope_layer = [&] {
    rope_rows(q, D, table, 0, Pairing::halves);
    rope_rows(k, D, table, 0, Pairing::halves);
  };
  const auto add = [&](const Tensor<3>& biases) {
    add_rows(ConstMatrix(biases.data(), H * T, T, T), scores);
  };
  const Tensor<3> alibi = alibi_biases(H, T, T);
  const Tensor<3> t5 = t5_biases(random.normal<2>({32, H}), T, T);
  add(alibi);
  const std::string sizes = fmt::format("T = {}, H = {}, D = {}", T, H, D);
  bench.expect_right("biases " + sizes, scores(3, 1) == alibi(0, 3, 1));
  bench.against(
      "ALiBi's biases added, " + sizes, [&] { add(alibi); }, "RoPE: q and k rotated", rope_layer);
  bench.against(
      "T5's biases added, " + sizes, [&] { add(t5); }, "RoPE: q and k rotated", rope_layer);
  bench.against(
      "Shaw's biases made and added, " + sizes, [&] { add(shaw_biases(q, vectors, T)); },
      "RoPE: q and k rotated", rope_layer);
}

void bench(Bench& bench) {
  const std::size_t T = 8192, C = 2048;
  for (const std::size_t D : {64, 128}) {
    const RopeTable table = rope_table(T, rope_frequencies(D));
    Tensor<2> x = xt::ones<float>({T, C});  // [T, C]; rotating keeps its elements small
    const double bytes = 2.0 * double(x.size() * sizeof(float));
    for (const Pairing pairing : {Pairing::neighbours, Pairing::halves}) {
      const std::string what = fmt::format("rope_rows [{}, {}], D = {}, {}", T, C, D,
                                           pairing == Pairing::halves ? "halves" : "neighbours");
      bench.expect_right(what, agrees(D, table, pairing));
      bench.against_update(what, bytes, [&] { rope_rows(x, D, table, 0, pairing); });
    }
  }
  bench_encodings(bench);
}

}  // namespace t2t
