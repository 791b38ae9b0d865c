// Rotating a long prompt's queries in place, compared with an update in place of as many bytes.
#include "timing/bench.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "03_rope/rope.hpp"
#include "random.hpp"

namespace t2t {

/// Compares the row kernel with the formula on a few rows: what is timed must be right.
static bool agrees(std::size_t D, const RopeTable& table, Pairing pairing) {
  Random random(1);
  const Tensor<2> x = random.normal<2>({4, 2 * D});  // [T, H·D]
  const Tensor<2> want = rope(x, D, table, 5, pairing);
  Tensor<2> got = x;
  rope_rows(got, D, table, 5, pairing);
  return std::ranges::equal(got, want, [](float a, float b) { return std::abs(a - b) < 1e-5f; });
}

void bench(Bench& bench) {
  const std::size_t T = 8192, C = 2048;
  for (const std::size_t D : {64, 128}) {
    const RopeTable table = rope_table(T, rope_frequencies(D));
    Tensor<2> x = xt::ones<float>({T, C});  // [T, C]; rotating keeps its numbers small
    const double bytes = 2.0 * double(x.size() * sizeof(float));
    for (const Pairing pairing : {Pairing::neighbours, Pairing::halves}) {
      const std::string what = fmt::format("rope_rows [{}, {}], D = {}, {}", T, C, D,
                                           pairing == Pairing::halves ? "halves" : "neighbours");
      bench.expect_right(what, agrees(D, table, pairing));
      bench.against_update(what, bytes, [&] { rope_rows(x, D, table, 0, pairing); });
    }
  }
}

}  // namespace t2t
