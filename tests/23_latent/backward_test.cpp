// What must be true of latent attention's gradients: differences in float64, and the two forms.
#include <doctest/doctest.h>

#include <vector>

#include "13_training/differences.hpp"
#include "23_latent/backward/latent_backward.hpp"
#include "23_latent/latent_in_double.hpp"
#include "support/all_close.hpp"
#include "support/refuses.hpp"

namespace t2t::latent_backward_test {

using std::size_t;

/// Small layers: by_differences computes each twice for every element.
static std::vector<LatentSettings> small_layers() {
  return {{.C = 5, .H = 3, .N = 3, .R = 2, .Dv = 2, .K = 4, .Q = 3},
          {.C = 4, .H = 2, .N = 2, .R = 4, .Dv = 3, .K = 3, .Q = 0, .m = 1.25f}};
}

static Tensor<2> as_row(const Tensor<1>& x) { return as_matrix(x); }

TEST_CASE("each gradient of the layer is that of finite differences in float64, in both forms") {
  for (const LatentSettings& s : small_layers()) {
    CAPTURE(s.H);
    const size_t T = 5;
    const Tensor<2> x = numbers(3, 2, 0, T, s.C), dy = numbers(4, 2, 0, T, s.C);
    const LatentWeights w = made_latent_weights(s);
    const RopeTable rope = rope_table(T, rope_frequencies(s.R));
    LatentDoubles in_double(x, w);
    const auto loss = [&] { return dot(dy, latent_layer_in_double(in_double, s)); };
    const auto check = [&](const Tensor<2>& got, Doubles& of) {
      const Tensor<2> want = by_differences(of, loss);
      // A gradient goes through sums of all widths, forward and back, and of T rows; partial sums
      // are below four times the largest gradient.
      const double near = 4 * rounding(2 * (s.C + s.Q + s.K + s.N + s.R + s.H * s.Dv) + T * s.H,
                                       4 + 4 * largest_of(want));
      CHECK(all_close(got, want, near));
    };
    for (const LatentCoreBackward core : {attend_latent_backward, attend_absorbed_backward}) {
      const LatentGradients d = latent_backward(x, w, s, rope, dy, core);
      check(d.x, in_double.x);
      check(d.weights.w_qb, in_double.w_qb);
      check(d.weights.w_kva, in_double.w_kva);
      check(as_row(d.weights.kv_gain), in_double.kv_gain);
      check(d.weights.w_kvb, in_double.w_kvb);
      check(d.weights.w_o, in_double.w_o);
      if (s.Q == 0) continue;
      check(d.weights.w_qa, in_double.w_qa);
      check(as_row(d.weights.q_gain), in_double.q_gain);
    }
  }
}

TEST_CASE("the two forms of the backward pass agree, for queries that see earlier rows as well") {
  for (const LatentSettings& s : odd_latents()) {
    CAPTURE(s.H);
    const size_t S = 9, T = 4;
    const Tensor<2> q = numbers(1, 2, 0, T, s.H * s.query_width());
    const Tensor<2> rows = numbers(2, 2, 0, S, s.row_width());
    const Tensor<2> w = made_latent_weights(s).w_kvb, dheads = numbers(5, 2, 0, T, s.H * s.Dv);
    const LatentCoreGradients plain = attend_latent_backward(q, rows, w, s, dheads),
                              other = attend_absorbed_backward(q, rows, w, s, dheads);
    const auto near = [&](const Tensor<2>& want) {
      return 4 * rounding(2 * (s.K + s.N + s.R + s.Dv) + S + T * s.H, 4 + 4 * largest_of(want));
    };
    CHECK(all_close(other.q, plain.q, near(plain.q)));
    CHECK(all_close(other.rows, plain.rows, near(plain.rows)));
    CHECK(all_close(other.w_kvb, plain.w_kvb, near(plain.w_kvb)));
  }
}

TEST_CASE("by hand: two equal scores, and a gradient that asks for more of the first value") {
  // Both keys are equal, so both weights are 1/2. Values 1 and 3, dout = 1: dP = (1, 3), and
  // dscores = ½·(1 − 2, 3 − 2) = (−½, ½). The rotated keys get them times the query, 2, times f.
  const LatentSettings s{.C = 1, .H = 1, .N = 1, .R = 2, .Dv = 1, .K = 1};
  const Tensor<2> q = {{0, 2, 0}}, rows = {{1, 1, 0}, {3, 1, 0}}, w = {{1}, {1}};
  const float f = 1 / std::sqrt(3.f);
  for (const LatentCoreBackward core : {attend_latent_backward, attend_absorbed_backward}) {
    const LatentCoreGradients d = core(q, rows, w, s, Tensor<2>{{1}});
    // c is the value: it gets its weight, ½. The query's first channel gets Σ ds·c = f·1.
    CHECK(all_close(d.rows, Tensor<2>{{0.5f, -f, 0}, {0.5f, f, 0}}, 16 * 0x1p-24));
    CHECK(all_close(d.q, Tensor<2>{{f, 0, 0}}, 16 * 0x1p-24));
    CHECK(all_close(d.w_kvb, Tensor<2>{{0}, {2}}, 16 * 0x1p-24));
  }
}

TEST_CASE("gradients of other shapes are refused by name") {
  const LatentSettings s = small_layers()[0];
  const Tensor<2> q = zeros(2, s.H * s.query_width()), rows = zeros(2, s.row_width());
  const LatentWeights w = made_latent_weights(s);
  for (const LatentCoreBackward core : {attend_latent_backward, attend_absorbed_backward})
    REFUSES(core(q, rows, w.w_kvb, s, zeros(2, 5)), "dheads: wanted shape [2, 6], got [2, 5]");
  const RopeTable rope = rope_table(2, rope_frequencies(s.R));
  REFUSES(latent_backward(numbers(3, 2, 0, 2, s.C), w, s, rope, zeros(2, 4)),
          "dy: wanted shape [2, 5], got [2, 4]");
}

}  // namespace t2t::latent_backward_test
