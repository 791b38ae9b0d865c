// What must be true of latent attention's two forms.
#include <doctest/doctest.h>

#include <cmath>

#include "23_latent/absorbed.hpp"
#include "23_latent/latent_costs.hpp"
#include "23_latent/latent_in_double.hpp"
#include "linalg.hpp"
#include "support/all_close.hpp"
#include "support/refuses.hpp"

namespace t2t::latent_forms_test {

using std::size_t;

static constexpr double u = 0x1p-24;  // one rounding of a number up to 1

static const LatentSettings two{.C = 2, .H = 1, .N = 2, .R = 2, .Dv = 2, .K = 2};
/// The page's case: latents (1, 0) and (0, 1), the same rotated keys, U, then Y.
static const Tensor<2> by_hand_rows = {{1, 0, 1, 0}, {0, 1, 0, 1}},
                       by_hand_w = {{1, 2}, {0, 1}, {2, 0}, {1, 1}}, by_hand_q = {{1, 1, 0, 2}};

TEST_CASE("by hand: keys (1, 0) and (2, 1), the absorbed query (1, 3), scores 1/2 and 5/2") {
  const LatentHead head = expand_head(by_hand_q, by_hand_rows, by_hand_w, two, 0);
  CHECK(all_close(head.k, Tensor<2>{{1, 0, 1, 0}, {2, 1, 0, 1}}, 0));
  CHECK(all_close(head.v, Tensor<2>{{2, 1}, {0, 1}}, 0));
  CHECK(all_close(absorb_queries(by_hand_q, by_hand_w, two), Tensor<2>{{1, 3, 0, 2}}, 0));
  const float p = 1 / (1 + std::exp(2.f));  // 0.1192, of the first position
  const Tensor<2> want = {{2 * p, 1}};
  CHECK(all_close(attend_latent(by_hand_q, by_hand_rows, by_hand_w, two), want, 16 * u));
  CHECK(all_close(attend_absorbed(by_hand_q, by_hand_rows, by_hand_w, two), want, 16 * u));
}

TEST_CASE("by hand: the absorbed query of two unequal ranks, and the output of a mean") {
  const LatentSettings three{.C = 3, .H = 1, .N = 2, .R = 2, .Dv = 1, .K = 3};
  const Tensor<2> q = {{2, 1, 5, 6}}, w = {{1, 0, 2}, {0, 3, 1}, {1, 1, 1}}, z = {{1, 2, 4}};
  CHECK(all_close(absorb_queries(q, w, three), Tensor<2>{{2, 3, 5, 5, 6}}, 0));
  CHECK(all_close(expand_outputs(z, w, three), Tensor<2>{{7}}, 0));
}

TEST_CASE("by hand: YaRN's factor counts twice, for both parts of a score") {
  LatentSettings stretched = two;
  stretched.m = std::sqrt(2.f);  // 2/√4 = 1: scores 1 and 5
  const float p = 1 / (1 + std::exp(4.f));
  // The scores are off by some roundings of 5.
  const Tensor<2> want = {{2 * p, 1}};
  CHECK(all_close(attend_latent(by_hand_q, by_hand_rows, by_hand_w, stretched), want, 64 * u));
  CHECK(all_close(attend_absorbed(by_hand_q, by_hand_rows, by_hand_w, stretched), want, 64 * u));
  CHECK(yarn_m(1, 1) == 1);
  const LatentSettings v3 = deepseek_v3(), lite = deepseek_v2_lite();
  CHECK(v3.m * v3.m == doctest::Approx(1.874).epsilon(0.0005));
  CHECK(lite.m * lite.m == doctest::Approx(1.590).epsilon(0.0005));
}

TEST_CASE("both forms are within the derived bound of float64, for a prompt and its last tokens") {
  for (const LatentSettings& s : odd_latents())
    for (const size_t S : {1, 7, 19})
      for (const size_t T : {size_t(1), (S + 1) / 2, S}) {
        CAPTURE(s.H);
        CAPTURE(S);
        CAPTURE(T);
        const Tensor<2> q = numbers(1, 2, 0, T, s.H * s.query_width());
        const Tensor<2> rows = numbers(2, 2, 0, S, s.row_width());
        const Tensor<2> w = made_latent_weights(s).w_kvb;
        const LatentReference want = attend_in_double(Doubles(q), Doubles(rows), Doubles(w), s);
        const Tensor<2> plain = attend_latent(q, rows, w, s),
                        other = attend_absorbed(q, rows, w, s);
        CHECK(all_close(plain, floats_of(want.heads), want.bound));
        CHECK(all_close(other, floats_of(want.heads), want.bound));
        CHECK(all_close(plain, other, 2 * want.bound));
        CHECK(want.bound < 1e-3 * (1 + largest_of(plain)));  // so that it is worth something
      }
}

TEST_CASE("the layer is float64's: projections, norms, and a rotation of its own channels") {
  for (const LatentSettings& s : odd_latents()) {
    CAPTURE(s.H);
    const size_t T = 11;
    const Tensor<2> x = numbers(3, 2, 0, T, s.C);
    const LatentWeights w = made_latent_weights(s);
    const RopeTable rope = rope_table(T, rope_frequencies(s.R));
    const Tensor<2> want = floats_of(latent_layer_in_double(LatentDoubles(x, w), s));
    // An element's way leads through sums of C, Q, K, N + R, T and H·Dv terms; the scores, whose
    // error moves the weights relatively, are below 8.
    const double near =
        8 * rounding(s.C + s.Q + s.K + s.N + s.R + T + s.H * s.Dv, 1 + largest_of(want));
    CHECK(all_close(latent_attention(x, w, s, rope), want, near));
    const Tensor<2> q = latent_queries(x, w, s, rope, 0), rows = latent_rows(x, w, s, rope, 0);
    CHECK(all_close(matmul_bt(attend_absorbed(q, rows, w.w_kvb, s), w.w_o), want, near));
  }
}

TEST_CASE("scores depend on the distance: all tokens moved by 100 positions give the same") {
  const LatentSettings s = odd_latents()[0];
  const size_t T = 9;
  const Tensor<2> x = numbers(3, 2, 0, T, s.C);
  const LatentWeights w = made_latent_weights(s);
  const RopeTable rope = rope_table(T + 100, rope_frequencies(s.R));
  const Tensor<2> here =
      attend_latent(latent_queries(x, w, s, rope, 0), latent_rows(x, w, s, rope, 0), w.w_kvb, s);
  const Tensor<2> there = attend_latent(latent_queries(x, w, s, rope, 100),
                                        latent_rows(x, w, s, rope, 100), w.w_kvb, s);
  CHECK(all_close(here, there, 8 * rounding(s.K + s.N + s.R + T, 1 + largest_of(here))));
  // And the position is felt at all: with only the queries moved, something changes.
  const Tensor<2> moved =
      attend_latent(latent_queries(x, w, s, rope, 3), latent_rows(x, w, s, rope, 0), w.w_kvb, s);
  CHECK_FALSE(all_close(here, moved, 0.01));
}

TEST_CASE("one head's matrices do not touch another head's output") {
  const LatentSettings s = odd_latents()[2];
  const Tensor<2> q = numbers(1, 2, 0, 4, s.H * s.query_width());
  const Tensor<2> rows = numbers(2, 2, 0, 6, s.row_width());
  Tensor<2> w = made_latent_weights(s).w_kvb;
  const Tensor<2> before = attend_absorbed(q, rows, w, s);
  for (size_t r = 0; r < s.N + s.Dv; ++r) row(w, 2 * (s.N + s.Dv) + r)[3] += 1;  // head 2
  const Tensor<2> after = attend_absorbed(q, rows, w, s);
  for (size_t h = 0; h < s.H; ++h) {
    CAPTURE(h);
    const Tensor<2> mine = copy_of(ConstMatrix(before).head(h, s.Dv)),
                    now = copy_of(ConstMatrix(after).head(h, s.Dv));
    CHECK(bool(all_close(mine, now, 0)) == (h != 2));
  }
}

TEST_CASE("by hand: what is counted is what the tensors hold and the products do") {
  const LatentSettings v3 = deepseek_v3();
  CHECK(absorbed_operations(v3) == 278528);
  CHECK(expanded_operations(v3) == 81920);
  CHECK(expanding_operations(v3) == 33554432);
  CHECK(queries_worth_expanding(v3) == 171);
  CHECK(model_caches()[0].elements == 61 * 576);
  CHECK(model_caches()[1].elements * 2 == 4997120);
  CHECK(model_caches()[4].elements * 2 == 327680);
  for (const LatentSettings& s : odd_latents()) {
    Random random(1);
    const LatentWeights w = draw_latent_weights(s, random);
    CHECK(latent_parameters(s) == w.w_qa.size() + w.q_gain.size() + w.w_qb.size() + w.w_kva.size() +
                                      w.kv_gain.size() + w.w_kvb.size() + w.w_o.size());
  }
}

TEST_CASE("sizes that can't be are refused by name") {
  LatentSettings s = two;
  s.R = 3;
  REFUSES(expect_latent(s),
          "R, a head's rotated channels: wanted an even number of at least 2, got 3");
  s = two, s.R = 0;
  REFUSES(expect_latent(s),
          "R, a head's rotated channels: wanted an even number of at least 2, got 0");
  s = two, s.H = 0;
  REFUSES(expect_latent(s), "H, the query heads: wanted at least 1, got 0");
  s = two, s.N = 0;
  REFUSES(expect_latent(s), "N, a head's channels without RoPE: wanted at least 1, got 0");
  s = two, s.Dv = 0;
  REFUSES(expect_latent(s), "Dv, the channels of a value: wanted at least 1, got 0");
  s = two, s.K = 0;
  REFUSES(expect_latent(s), "K, the rank of the latent: wanted at least 1, got 0");
  s = two, s.C = 0;
  REFUSES(expect_latent(s), "C, the width of the layer: wanted at least 1, got 0");
  s = two, s.m = 0;
  REFUSES(expect_latent(s), "m, the factor of the scores: wanted a finite number above 0, got 0");
  s = two, s.eps = -1;
  REFUSES(expect_latent(s), "eps: wanted a finite number of at least 0, got -1");
  REFUSES(yarn_m(0.5, 1), "factor: wanted a finite number of at least 1, got 0.5");
  REFUSES(queries_worth_expanding(two), "N + Dv: wanted below 2·K = 4, got 4");
}

TEST_CASE("tensors of other shapes are refused by name") {
  REFUSES(attend_absorbed(zeros(1, 5), by_hand_rows, by_hand_w, two),
          "q: wanted shape [1, 4], got [1, 5]");
  REFUSES(attend_absorbed(by_hand_q, zeros(2, 3), by_hand_w, two),
          "rows: wanted shape [2, 4], got [2, 3]");
  REFUSES(attend_absorbed(by_hand_q, by_hand_rows, zeros(4, 3), two),
          "w_kvb: wanted shape [4, 2], got [4, 3]");
  REFUSES(attend_absorbed(zeros(3, 4), by_hand_rows, by_hand_w, two),
          "causal mask: wanted at least as many keys as queries, got 2 and 3");
  REFUSES(absorb_queries(zeros(1, 3), by_hand_w, two), "q: wanted shape [1, 4], got [1, 3]");
  REFUSES(absorb_queries(by_hand_q, zeros(5, 2), two), "w_kvb: wanted shape [4, 2], got [5, 2]");
  REFUSES(expand_outputs(zeros(1, 3), by_hand_w, two), "z: wanted shape [1, 2], got [1, 3]");
  REFUSES(expand_outputs(zeros(1, 2), zeros(5, 2), two), "w_kvb: wanted shape [4, 2], got [5, 2]");
  const LatentSettings s = odd_latents()[0];
  const RopeTable rope = rope_table(4, rope_frequencies(s.R));
  LatentWeights w = made_latent_weights(s);
  REFUSES(latent_queries(zeros(2, 12), w, s, rope, 0), "x: wanted shape [2, 13], got [2, 12]");
  REFUSES(latent_rows(zeros(2, 12), w, s, rope, 0), "x: wanted shape [2, 13], got [2, 12]");
  w.kv_gain = zeros(8);
  REFUSES(latent_rows(zeros(2, 13), w, s, rope, 0), "kv_gain: wanted shape [9], got [8]");
}

}  // namespace t2t::latent_forms_test
