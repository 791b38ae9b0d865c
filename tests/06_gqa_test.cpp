// What must be true of grouped-query attention: the formula, the kernel for many queries and the
// kernel for one.
#include <doctest/doctest.h>
#include <fmt/core.h>

#include <array>
#include <cmath>
#include <string>
#include <tuple>
#include <utility>

#include "05_kv_cache/kv_cache.hpp"
#include "06_gqa/fast/decode_attention.hpp"
#include "06_gqa/fast/grouped_rows.hpp"
#include "06_gqa/grouped_query_attention.hpp"
#include "06_gqa/repeat_kv.hpp"
#include "files/npy.hpp"
#include "linalg.hpp"
#include "rows.hpp"
#include "shapes.hpp"
#include "support/all_close.hpp"
#include "support/allocations.hpp"
#include "support/attention_in_double.hpp"
#include "support/refuses.hpp"

using namespace t2t;
using std::size_t;

static constexpr double u = 0x1p-24;  // one rounding of a number up to 1

static Tensor<2> draw(size_t rows, size_t cols, size_t seed, float deviation = 1) {
  return Random(seed).normal<2>({rows, cols}, deviation);
}
static Tensor<2> fixture(const std::string& name) {
  return load_npy<2>(T2T_FIXTURES "/" + name + ".npy");
}
/// The kernel on keys and values as the projections give them.
static Tensor<2> by_rows(const Tensor<2>& q, const Tensor<2>& k, const Tensor<2>& v, size_t H,
                         size_t G, const ScoreRule& mask = Mask::causal) {
  Tensor<2> out = Tensor<2>::from_shape(q.shape());
  GroupedScratch scratch(q.shape(0), k.shape(0), H, q.shape(1) / H);
  grouped_attention_rows(q, side_by_side(k, v, G), mask, out, scratch);
  return out;
}
/// The kernel on a cache with rows that are not filled and hold numbers that must not be read.
static Tensor<2> by_cache(const Tensor<2>& q, const Tensor<2>& k, const Tensor<2>& v, size_t H,
                          size_t G, const ScoreRule& mask = Mask::causal) {
  KvCache cache = make_kv_cache(G, k.shape(0) + 5, k.shape(1) / G);
  cache.keys.fill(3), cache.values.fill(1000);
  append(cache, k, v);
  Tensor<2> out = Tensor<2>::from_shape(q.shape());
  GroupedScratch scratch(q.shape(0), k.shape(0), H, q.shape(1) / H);
  grouped_attention_rows(q, cached_heads(cache), mask, out, scratch);
  return out;
}

/// The same with the text in chunks of at most `chunk` tokens: chunk = 1 is decode.
static Tensor<2> in_chunks(const Tensor<2>& q, const Tensor<2>& k, const Tensor<2>& v, size_t H,
                           size_t G, const ScoreRule& mask, size_t chunk) {
  const size_t S = k.shape(0), D = q.shape(1) / H;
  KvCache cache = make_kv_cache(G, S, D);
  GroupedScratch scratch(chunk, S, H, D);
  Tensor<2> out = xt::zeros<float>({S, H * D});
  for (size_t t = 0; t < S; t += chunk) {
    const size_t T = std::min(chunk, S - t);
    append(cache, ConstMatrix(k).rows_from(t, T), ConstMatrix(v).rows_from(t, T));
    grouped_attention_rows(ConstMatrix(q).rows_from(t, T), cached_heads(cache), mask,
                           Matrix(out).rows_from(t, T), scratch);
  }
  return out;
}

// The roundings of a sum of n terms go up as often as down: they come to about √n/2 · u of its
// largest partial sum. A score is such a sum of D terms, and its error moves the weights by as
// much; out is one of S terms. Partial sums reach some 4, and we allow twice that.
static double bound(size_t D, size_t S) {
  return 8 * (std::sqrt(double(D)) / 2 + std::sqrt(double(S)) / 2) * u;
}

TEST_CASE("by hand: of six heads, the first three read group 0 and the others read group 1") {
  const Tensor<2> q = xt::zeros<float>({1, 6}), k = {{1, 1}, {1, 1}};  // equal scores: plain means
  const Tensor<2> v = {{10, 20}, {30, 40}}, want = {{20, 20, 20, 30, 30, 30}};
  CHECK(all_close(grouped_query_attention(q, k, v, 6, 2, Mask::causal), want, 40 * u));
  CHECK(all_close(by_rows(q, k, v, 6, 2), want, 40 * u));
  CHECK(all_close(by_cache(q, k, v, 6, 2), want, 40 * u));

  const Tensor<2> two = xt::zeros<float>({2, 6}),
                  first_and_both = {{10, 10, 10, 20, 20, 20}, {20, 20, 20, 30, 30, 30}};
  CHECK(all_close(by_rows(two, k, v, 6, 2), first_and_both, 40 * u));
}

TEST_CASE("by hand: the copies of a group stand next to each other") {
  const Tensor<2> x = {{1, 2, 3, 4}}, want = {{1, 2, 1, 2, 1, 2, 3, 4, 3, 4, 3, 4}};
  CHECK(all_close(repeat_kv(x, 6, 2), want, 0));
}

TEST_CASE("by hand: two stretches are joined by the sums of e^score: 3 to 1") {
  // One key with score ln 3 and value 1 against one with score 0 and value 5: 3/4 and 1/4.
  const Tensor<2> stretches = {{1}, {5}};
  const Tensor<1> log_sums = {std::log(3.f), 0};
  Tensor<2> out = empty(1, 1);
  const Tensor<2> want = {{2}};
  join_stretches(stretches, row(log_sums), row(out, 0));
  CHECK(all_close(out, want, 8 * u));
}

TEST_CASE("by hand: stretches are joined whichever of them has the highest score") {
  // Sums of e^score 1, 4 and 3, so the values 8, 2 and 4 weigh 1/8, 4/8 and 3/8.
  const Tensor<2> stretches = {{8, 16}, {2, 4}, {4, 8}}, want = {{3.5f, 7}};
  for (const float far : {0.f, 1000.f, -1000.f}) {  // e^1000 is beyond float32
    CAPTURE(far);
    const Tensor<1> log_sums = {far, far + std::log(4.f), far + std::log(3.f)};
    Tensor<2> out = xt::ones<float>({1, 2}) * NAN;
    join_stretches(stretches, row(log_sums), row(out, 0));
    // The log-sums are rounded to a unit of `far`, by which the weights are off relatively.
    CHECK(all_close(out, want, 16 * (8 + std::abs(far)) * u));
  }
  // A stretch whose log-sum is 200 below another's weighs nothing: e^-200 is 0, e^200 infinite.
  for (size_t best = 0; best < 3; ++best) {
    CAPTURE(best);
    Tensor<1> log_sums = {-200, -200, -200};
    log_sums(best) = 0;
    Tensor<2> out = xt::ones<float>({1, 2}) * NAN;
    join_stretches(stretches, row(log_sums), row(out, 0));
    CHECK(all_close(out, Tensor<2>{{stretches(best, 0), stretches(best, 1)}}, 0));
  }
}

TEST_CASE("by hand: one stretch leaves its weights, their mean of the values, and the log-sum") {
  // Scores 2·ln 3 / √4 = ln 3 and 0; then with a query of half the size, ln √3 and 0.
  const Tensor<2> q = {{2, 0, 0, 0}, {1, 0, 0, 0}}, k = {{std::log(3.f), 5, 5, 5}, {0, 6, 6, 6}};
  const Tensor<2> v = {{4, 0, 8, 1}, {0, 4, 8, 1}};
  const float root = std::sqrt(3.f), less = root / (1 + root);
  Tensor<2> scores = empty(2, 2), out = empty(2, 4), log_sums = empty(2, 1);
  attend_stretch(q, k, v, scores, out, log_sums);
  CHECK(all_close(scores, Tensor<2>{{0.75f, 0.25f}, {less, 1 - less}}, 8 * u));
  CHECK(all_close(out, Tensor<2>{{3, 1, 8, 1}, {4 * less, 4 - 4 * less, 8, 1}}, 8 * 8 * u));
  CHECK(all_close(log_sums, Tensor<2>{{std::log(4.f)}, {std::log(1 + root)}}, 8 * u));
}

TEST_CASE("keys in two pieces give the bits of one, wherever they are cut") {
  const size_t N = 5, S = 40, D = 20;
  const Tensor<2> q = draw(N, D, 1), k = draw(S, D, 2), v = draw(S, D, 3);
  Tensor<2> scores = empty(N, S), want = empty(N, D), want_sums = empty(N, 1);
  attend_stretch(q, k, v, scores, want, want_sums);
  for (const size_t first : {1, 16, 37}) {
    CAPTURE(first);
    const KeyPiece pieces[] = {
        {ConstMatrix(k).rows_from(0, first), ConstMatrix(v).rows_from(0, first)},
        {ConstMatrix(k).rows_from(first, S - first), ConstMatrix(v).rows_from(first, S - first)}};
    Tensor<2> out = empty(N, D), sums = empty(N, 1);
    scores.fill(NAN);
    attend_stretch(q, pieces, scores, out, sums);
    CHECK(all_close(out, want, 0));
    CHECK(all_close(sums, want_sums, 0));
  }
}

TEST_CASE(
    "if all scores of a head overflow to -infinity, its log-sum and all joined of it are NaN") {
  const Tensor<2> q = {{1e30f, 1e30f}}, k = {{-1e30f, -1e30f}, {-1e30f, -1e30f}},
                  v = {{1, 2}, {3, 4}};
  Tensor<2> scores = empty(1, 2), stretches = xt::ones<float>({2, 2}), log_sums = empty(1, 1);
  attend_stretch(q, k, v, scores, Matrix(stretches).rows_from(0, 1), log_sums);
  CHECK(std::isnan(log_sums(0, 0)));
  // The other stretch has the log-sum 0 and the values 1 and 1.
  for (const Tensor<1>& sums : {Tensor<1>{log_sums(0, 0), 0}, Tensor<1>{0, log_sums(0, 0)}}) {
    Tensor<2> out = empty(1, 2);
    join_stretches(stretches, row(sums), row(out, 0));
    CHECK(std::isnan(out(0, 0)));
    CHECK(std::isnan(out(0, 1)));
  }
}

TEST_CASE("by hand: the last stretch of 513 keys weighs what its keys weigh") {
  // 512 keys with score 0 and value 1, the last with score ln 512 and value 3: the mean is 2.
  const size_t S = stretch_keys + 1;
  Tensor<2> k = xt::zeros<float>({S, size_t(4)}), v = xt::ones<float>({S, size_t(4)});
  row(k, S - 1)[0] = std::log(512.f), v(S - 1, 0) = v(S - 1, 1) = v(S - 1, 2) = v(S - 1, 3) = 3;
  const Tensor<2> q = {{2, 0, 0, 0}}, want = {{2, 2, 2, 2}};
  // Weights and their sum are off by the rounding of ln 512 = 6.24 and of sums of 257 terms.
  CHECK(all_close(by_cache(q, k, v, 1, 1), want, 4 * (8 + std::sqrt(257.0) / 2) * u));
  CHECK(all_close(grouped_query_attention(q, k, v, 1, 1, Mask::causal), want,
                  4 * (8 + std::sqrt(513.0) / 2) * u));
}

TEST_CASE("PyTorch agrees: prefill, decode and a layer with H·D other than C") {
  const Tensor<2> q = fixture("prefill_q"), k = fixture("prefill_k"), v = fixture("prefill_v");
  const Tensor<2> want = fixture("prefill_out");  // T = 37, H = 6, G = 2, D = 16
  CHECK(all_close(grouped_query_attention(q, k, v, 6, 2, Mask::causal), want, bound(16, 37)));
  CHECK(all_close(by_rows(q, k, v, 6, 2), want, bound(16, 37)));
  CHECK(all_close(by_cache(q, k, v, 6, 2), want, bound(16, 37)));

  const Tensor<2> q1 = fixture("decode_q"), k1 = fixture("decode_k"), v1 = fixture("decode_v");
  const Tensor<2> want1 = fixture("decode_out");  // S = 42
  CHECK(all_close(grouped_query_attention(q1, k1, v1, 6, 2, Mask::causal), want1, bound(16, 42)));
  CHECK(all_close(by_rows(q1, k1, v1, 6, 2), want1, bound(16, 42)));
  CHECK(all_close(by_cache(q1, k1, v1, 6, 2), want1, bound(16, 42)));

  const GroupedWeights weights = {fixture("layer_w_q"), fixture("layer_w_k"), fixture("layer_w_v"),
                                  fixture("layer_w_o")};  // C = 20, H = 6, G = 3, D = 3
  CHECK(all_close(grouped_query_attention(fixture("layer_x"), weights, 6, 3, Mask::causal),
                  fixture("layer_out"), bound(20, 18)));
}

TEST_CASE("with G = H it is chapter 04, with G = 1 every head reads the same keys") {
  const size_t H = 4, D = 10, S = 70;
  const Tensor<2> k = draw(S, H * D, 1), v = draw(S, H * D, 2);
  for (const size_t T : {1, 70}) {
    CAPTURE(T);
    const Tensor<2> q = draw(T, H * D, 3);
    Tensor<2> heads = empty(T, H * D), shared = empty(T, H * D);
    AttentionScratch scratch(T, S);
    attention_rows(q, side_by_side(k, v, H), Mask::causal, heads, scratch);
    CHECK(all_close(by_rows(q, k, v, H, H), heads, bound(D, S)));

    const Tensor<2> k1 = xt::view(k, xt::all(), xt::range(0, D)),
                    v1 = xt::view(v, xt::all(), xt::range(0, D));
    for (size_t h = 0; h < H; ++h)
      attend(ConstMatrix(q).head(h, D), k1, v1, Mask::causal, Matrix(shared).head(h, D),
             scratch.rows().row(0));
    CHECK(all_close(by_rows(q, k1, v1, H, 1), shared, bound(D, S)));
    CHECK(all_close(grouped_query_attention(q, k1, v1, H, 1, Mask::causal), shared, bound(D, S)));
  }
}

TEST_CASE("for every G, reading in place equals chapter 04 on repeated keys and values") {
  const size_t H = 12, D = 7, S = 40;
  for (const size_t G : {1, 2, 3, 4, 6, 12})
    for (const size_t T : {1, 2, 40}) {
      CAPTURE(G);
      CAPTURE(T);
      const Tensor<2> q = draw(T, H * D, G), k = draw(S, G * D, 50), v = draw(S, G * D, 51);
      Tensor<2> want = empty(T, H * D);
      AttentionScratch scratch(T, S);
      const Tensor<2> all_k = repeat_kv(k, H, G), all_v = repeat_kv(v, H, G);
      attention_rows(q, side_by_side(all_k, all_v, H), Mask::causal, want, scratch);
      CHECK(all_close(grouped_query_attention(q, k, v, H, G, Mask::causal), want, bound(D, S)));
      CHECK(all_close(by_rows(q, k, v, H, G), want, bound(D, S)));
      CHECK(all_close(by_cache(q, k, v, H, G), want, bound(D, S)));
    }
}

TEST_CASE("cross attention: queries of one text, grouped keys of another, cached or not") {
  const size_t C = 20, H = 6, G = 2, D = 7, T = 4, S = 11;
  Random random(8);
  const GroupedWeights weights = draw_grouped_weights(C, H, G, D, random);
  const Tensor<2> x = random.normal<2>({T, C}), memory = random.normal<2>({S, C});
  const Tensor<2> q = matmul_bt(x, weights.w_q), k = matmul_bt(memory, weights.w_k),
                  v = matmul_bt(memory, weights.w_v);
  const Tensor<2> want = grouped_query_attention(x, memory, weights, H, G, Mask::none);
  // One product of H·D terms follows; its weights are of size 1/√(H·D), so it adds no digits.
  for (const Tensor<2>& heads :
       {by_rows(q, k, v, H, G, Mask::none), by_cache(q, k, v, H, G, Mask::none)})
    CHECK(all_close(matmul_bt(heads, weights.w_o), want, 2 * bound(D, S)));
  // Queries that see all keys see them from anywhere: one query alone gets what it got among four.
  const Tensor<2> second = xt::view(q, xt::range(1, 2), xt::all());
  const Tensor<2> alone = matmul_bt(by_cache(second, k, v, H, G, Mask::none), weights.w_o);
  CHECK(all_close(alone, Tensor<2>(xt::view(want, xt::range(1, 2), xt::all())), 2 * bound(D, S)));
}

TEST_CASE("the layer of one text goes by its mask: none, causal or a window") {
  const size_t C = 20, H = 6, G = 3, D = 3, T = 9;
  Random random(9);
  const GroupedWeights weights = draw_grouped_weights(C, H, G, D, random);
  const Tensor<2> x = random.normal<2>({T, C});
  const Tensor<2> q = matmul_bt(x, weights.w_q), k = matmul_bt(x, weights.w_k),
                  v = matmul_bt(x, weights.w_v);
  for (const Mask mask : {Mask::none, Mask::causal, Mask::sliding(2)}) {
    CAPTURE(mask.is_causal);
    CAPTURE(mask.window);
    const Tensor<2> heads = attention_in_double(q, k, v, H, G, mask);
    // The heads' error, and that of the projections around them, sums of C and of H·D products.
    CHECK(all_close(grouped_query_attention(x, weights, H, G, mask), matmul_bt(heads, weights.w_o),
                    bound(D, T) + bound(C, H * D)));
  }
}

TEST_CASE("tiled heads (h mod G) are another function, but not at heads 0 and H - 1") {
  const size_t H = 6, G = 2, D = 8, S = 9;
  const Tensor<2> q = draw(S, H * D, 1), k = draw(S, G * D, 2), v = draw(S, G * D, 3);
  const Tensor<2> got = by_rows(q, k, v, H, G);
  for (size_t h = 0; h < H; ++h) {
    CAPTURE(h);
    Tensor<2> tiled = empty(S, D), ours = xt::view(got, xt::all(), xt::range(h * D, h * D + D));
    Tensor<1> scratch = empty(attend_floats(S, S));
    attend(ConstMatrix(q).head(h, D), ConstMatrix(k).head(h % G, D), ConstMatrix(v).head(h % G, D),
           Mask::causal, tiled, row(scratch));
    const bool same = bool(all_close(ours, tiled, bound(D, S)));
    CHECK(same == (h / (H / G) == h % G));
    CHECK(group_of(h, H, G) == h / 3);
  }
}

TEST_CASE("decode equals the formula at every group size and width of head") {
  for (const auto& [N, D] : {std::array{1u, 1u},
                             {2u, 3u},
                             {3u, 64u},
                             {4u, 17u},
                             {5u, 33u},
                             {6u, 80u},
                             {7u, 100u},
                             {8u, 128u},
                             {9u, 65u}}) {
    for (const size_t S : {1, 15, 17, 600}) {
      const Tensor<2> q = draw(1, 2 * N * D, D), k = draw(S, 2 * D, S), v = draw(S, 2 * D, N);
      CAPTURE(q.shape(1));
      CAPTURE(k.shape(1));
      CAPTURE(S);
      CHECK(all_close(by_cache(q, k, v, 2 * N, 2),
                      grouped_query_attention(q, k, v, 2 * N, 2, Mask::causal), bound(D, S)));
    }
  }
}

TEST_CASE("decode equals prefill at every step, and in chunks") {
  const size_t H = 6, G = 3, D = 12, S = 75;
  const Tensor<2> q = draw(S, H * D, 1), k = draw(S, G * D, 2), v = draw(S, G * D, 3);
  const Tensor<2> whole = by_rows(q, k, v, H, G);
  for (const size_t chunk : {1, 3, 64}) {
    CAPTURE(chunk);
    CHECK(all_close(in_chunks(q, k, v, H, G, Mask::causal, chunk), whole, bound(D, S)));
  }
}

TEST_CASE("sliding windows: formula, rows and decode, from a cache and in chunks") {
  const size_t H = 6, G = 2, D = 10, S = 150;
  const Tensor<2> q = draw(S, H * D, 1), k = draw(S, G * D, 2), v = draw(S, G * D, 3);
  for (const size_t window : windows_of(S)) {
    CAPTURE(window);
    const Mask mask = Mask::sliding(window);
    const Tensor<2> want = attention_in_double(q, k, v, H, G, mask);
    CHECK(all_close(grouped_query_attention(q, k, v, H, G, mask), want, bound(D, S)));
    CHECK(all_close(by_rows(q, k, v, H, G, mask), want, bound(D, S)));
    for (const size_t chunk : {1, 70}) {
      CAPTURE(chunk);
      CHECK(all_close(in_chunks(q, k, v, H, G, mask, chunk), want, bound(D, S)));
    }
  }
}

TEST_CASE("other rules for scores: formula, rows and decode, from a cache and in chunks") {
  const size_t H = 6, G = 2, D = 10, S = 700;  // two stretches
  const Tensor<2> q = draw(S, H * D, 1), k = draw(S, G * D, 2), v = draw(S, G * D, 3);
  for (const ScoreRule& rule : other_rules()) {
    CAPTURE(rule.factor);
    CAPTURE(rule.cap);
    const Tensor<2> want = attention_in_double(q, k, v, H, G, rule);
    CHECK(all_close(grouped_query_attention(q, k, v, H, G, rule), want, 5 * bound(D, S)));
    for (const size_t chunk : {1, 70})
      CHECK(all_close(in_chunks(q, k, v, H, G, rule, chunk), want, 5 * bound(D, S)));
  }
}

TEST_CASE("decode reads the keys of its window and no other") {
  const size_t H = 4, G = 2, D = 16, S = 1400, window = 600;
  const Tensor<2> q = draw(1, H * D, 1);
  Tensor<2> k = draw(S, G * D, 2), v = draw(S, G * D, 3);
  const Tensor<2> want = attention_in_double(q, k, v, H, G, Mask::sliding(window));
  for (size_t s = 0; s < S - window; ++s) row(k, s)[3] = row(v, s)[3] = NAN;
  CHECK(all_close(by_cache(q, k, v, H, G, Mask::sliding(window)), want, bound(D, S)));
}

TEST_CASE("a long cache is cut into stretches and joined, and large scores do not overflow") {
  const size_t H = 4, G = 2, D = 16, S = 2 * stretch_keys + 77;
  const Tensor<2> q = draw(1, H * D, 1, 0.1f) + 1, v = draw(S, G * D, 3);
  Tensor<2> k = draw(S, G * D, 2);
  CHECK(stretch_count(stretch_keys) == 1);
  CHECK(stretch_count(S) == 3);
  // A mean of 1101 values stays below 0.2, and so do its partial sums: a sixteenth of the 4 above.
  CHECK(all_close(by_cache(q, k, v, H, G), grouped_query_attention(q, k, v, H, G, Mask::causal),
                  bound(D, S) / 16));

  // Scores around 100, growing by 2 along the text: e^100 is beyond float32.
  for (size_t s = 0; s < S; ++s)
    for (size_t c = 0; c < G * D; ++c) k(s, c) += 25 + 0.5f * float(s) / float(S);
  CHECK(all_close(by_cache(q, k, v, H, G), grouped_query_attention(q, k, v, H, G, Mask::causal),
                  2 * 100 * std::sqrt(double(D)) / 2 * u));
}

TEST_CASE("36 heads, and ten stretches of keys: each form equals float64") {
  const size_t H = 36, G = 4, D = 16, S = 9 * stretch_keys + 3;
  const Tensor<2> k = draw(S, G * D, 31), v = draw(S, G * D, 32), all = draw(2, H * D, 33);
  CHECK(stretch_count(S) == 10);
  for (const size_t T : {1, 2}) {
    const Tensor<2> q = copy_of(ConstMatrix(all).rows_from(2 - T, T));
    const Tensor<2> want = attention_in_double(q, k, v, H, G, Mask::causal);
    const double most = 16 * (std::sqrt(double(D)) + std::sqrt(double(S))) * u;
    CHECK(all_close(grouped_query_attention(q, k, v, H, G, Mask::causal), want, most));
    CHECK(all_close(by_rows(q, k, v, H, G), want, most));
    CHECK(all_close(by_cache(q, k, v, H, G), want, most));
  }
}

TEST_CASE("130 heads: decode equals the formula, as with few") {
  const size_t H = 130, G = 2, D = 4, S = stretch_keys + 5;
  const Tensor<2> q = draw(1, H * D, 34), k = draw(S, G * D, 35), v = draw(S, G * D, 36);
  CHECK(all_close(by_rows(q, k, v, H, G), grouped_query_attention(q, k, v, H, G, Mask::causal),
                  bound(D, S)));
}

TEST_CASE("scratch for more keys or queries serves fewer, which may need more of it") {
  // 513 keys have two stretches of at most 257 keys, 512 keys have one. Two queries over 513 keys
  // have fewer scores than one query with four heads over 512.
  const size_t H = 4, D = 8, S = stretch_keys;
  const Tensor<2> q = draw(1, H * D, 1), k = draw(S, D, 2), v = draw(S, D, 3);
  const Tensor<2> want = grouped_query_attention(q, k, v, H, 1, Mask::causal);
  for (const size_t T : {1, 2}) {
    CAPTURE(T);
    GroupedScratch scratch(T, S + 1, H, D);
    CHECK(scratch.scores.shape(1) >= H * S);
    Tensor<2> out = xt::zeros<float>({size_t(1), H * D});
    CHECK_NOTHROW(grouped_attention_rows(q, side_by_side(k, v, 1), Mask::causal, out, scratch));
    CHECK(all_close(out, want, bound(D, S)));
  }
}

TEST_CASE("scratch made for fewer heads and more stretches serves a call of as many floats") {
  // For 2 heads over 4 stretches it has [8, 8] outputs and [2, 4] log-sums: as many floats as 8
  // heads over one stretch need.
  const size_t H = 8, D = 8, S = stretch_keys;
  const Tensor<2> q = draw(1, H * D, 1), k = draw(S, H * D, 2), v = draw(S, H * D, 3);
  GroupedScratch scratch(1, 4 * S, 2, D);
  Tensor<2> out = xt::zeros<float>({size_t(1), H * D});
  CHECK_NOTHROW(grouped_attention_rows(q, side_by_side(k, v, H), Mask::causal, out, scratch));
  CHECK(all_close(out, grouped_query_attention(q, k, v, H, H, Mask::causal), bound(D, S)));
}

TEST_CASE("two whole stretches fill the scratch of one thread, and no more than that") {
  const size_t H = 4, D = 8, S = 2 * stretch_keys, threads = thread_count();
  const Tensor<2> q = draw(1, H * D, 1), k = draw(S, D, 2), v = draw(S, D, 3);
  set_threads(1);  // so that what is written past a thread's scores is past all of them
  CHECK(all_close(by_rows(q, k, v, H, 1), grouped_query_attention(q, k, v, H, 1, Mask::causal),
                  bound(D, S)));
  set_threads(int(threads));
}

TEST_CASE("the kernel allocates nothing, for one query, for several, and for joined stretches") {
  const size_t H = 4, G = 2, D = 8, S = stretch_keys + 9;
  const Tensor<2> q = draw(3, H * D, 1), k = draw(S, G * D, 2), v = draw(S, G * D, 3);
  const KeyValueHeads heads = side_by_side(k, v, G);
  GroupedScratch scratch(3, S, H, D);
  Tensor<2> out = empty(3, H * D);
  for (const size_t T : {1, 3}) {
    CAPTURE(T);
    const ConstMatrix queries = ConstMatrix(q).rows_from(0, T);
    const Matrix to = Matrix(out).rows_from(0, T);
    grouped_attention_rows(queries, heads, Mask::causal, to, scratch);
    CHECK(allocates_nothing(
        3, [&] { grouped_attention_rows(queries, heads, Mask::causal, to, scratch); }));
  }
}

TEST_CASE("the result is the same bit by bit on one thread and on two") {
  const Tensor<2> q = draw(1, 9 * 8, 1), k = draw(1500, 3 * 8, 2), v = draw(1500, 3 * 8, 3);
  set_threads(1);
  const Tensor<2> one = by_rows(q, k, v, 9, 3);
  set_threads(2);
  CHECK(all_close(by_rows(q, k, v, 9, 3), one, 0));
}

TEST_CASE("weights: projections for keys and values are [G·D, C], and the count is 2·C·D·(H + G)") {
  Random random(1);
  const GroupedWeights weights = draw_grouped_weights(576, 9, 3, 64, random);
  CHECK(weights.w_q.shape(0) == 576);
  CHECK(weights.w_k.shape(0) == 192);
  CHECK(weights.w_v.shape(0) == 192);
  CHECK(weights.w_o.shape(1) == 576);
  const size_t count =
      weights.w_q.size() + weights.w_k.size() + weights.w_v.size() + weights.w_o.size();
  CHECK(grouped_parameters(576, 9, 3, 64) == count);
  CHECK(count == 884736);
  CHECK(grouped_parameters(20, 6, 3, 3) == 2 * 20 * 3 * (6 + 3));  // H·D is not C
}

TEST_CASE("drawn weights have mean 0 and variance 1 / columns, and come in the order q, k, v, o") {
  const size_t C = 40, H = 6, G = 2, D = 16;
  Random random(2), same(2);
  const GroupedWeights drawn = draw_grouped_weights(C, H, G, D, random);
  for (const auto& [w, rows, cols] : {std::tuple(&drawn.w_q, H * D, C),
                                      {&drawn.w_k, G * D, C},
                                      {&drawn.w_v, G * D, C},
                                      {&drawn.w_o, C, H * D}}) {
    REQUIRE(w->shape() == std::array{rows, cols});
    const double count = double(rows * cols), deviation = 1 / std::sqrt(double(cols));
    double sum = 0, squares = 0;
    for (const float weight : *w) sum += weight, squares += double(weight) * double(weight);
    // Four standard deviations of the mean and of the deviation of so many numbers.
    CHECK(std::abs(sum / count) < 4 * deviation / std::sqrt(count));
    CHECK(std::abs(std::sqrt(squares / count) - deviation) < 4 * deviation / std::sqrt(2 * count));
    CHECK(all_close(*w, same.normal<2>({rows, cols}, float(deviation)), 4 * u));
  }
}

TEST_CASE("refused: shapes that disagree, groups that do not divide, scratch that is too small") {
  const Tensor<2> q = draw(3, 12, 1), k = draw(5, 8, 2), v = draw(5, 8, 3);
  REFUSES(expect_groups(9, 2),
          "groups: wanted G key and value heads that divide H query heads, got H = 9, "
          "G = 2");
  REFUSES(repeat_kv(draw(3, 5, 1), 6, 2), "x: wanted shape [3, 4], got [3, 5]");
  REFUSES(grouped_query_attention(q, k, v, 3, 0, Mask::none),
          "groups: wanted G key and value heads that divide H query heads, got H = 3, "
          "G = 0");
  REFUSES(by_rows(q, k, v, 6, 0), "heads: wanted a number H that divides C = 8, got H = 0");
  REFUSES(grouped_query_attention(q, k, draw(4, 8, 1), 3, 1, Mask::none),
          "k: wanted shape [5, 4], got [5, 8]");
  REFUSES(by_rows(q, draw(5, 4, 1), v, 3, 1), "v: wanted shape [5, 4], got [5, 8]");
  REFUSES(by_rows(q, k, v, 3, 1),
          "q: wanted whole heads of width D = 8, got 12 "
          "columns");

  Random random(3);
  GroupedWeights weights = draw_grouped_weights(10, 4, 2, 3, random);
  const Tensor<2> x = draw(5, 10, 1);
  const auto layer = [&] { return grouped_query_attention(x, weights, 4, 2, Mask::causal); };
  CHECK_NOTHROW(layer());
  for (const auto& [name, w, wanted] : {std::tuple("w_q", &weights.w_q, "[12, 10]"),
                                        {"w_k", &weights.w_k, "[6, 10]"},
                                        {"w_v", &weights.w_v, "[6, 10]"},
                                        {"w_o", &weights.w_o, "[10, 12]"}}) {
    const Tensor<2> fitting = std::exchange(*w, draw(14, 9, 1));
    REFUSES(layer(), fmt::format("{}: wanted shape {}, got [14, 9]", name, wanted));
    *w = fitting;
  }
  REFUSES(grouped_query_attention(x, draw(5, 9, 1), weights, 4, 2, Mask::none),
          "memory: wanted shape [5, 10], got [5, 9]");
  REFUSES(grouped_query_attention(x, weights, 4, 3, Mask::none),
          "groups: wanted G key and value heads that divide H query heads, got H = 4, G = 3");

  KvCache cache = make_kv_cache(2, 8, 4);
  Tensor<2> out = empty(3, 16);
  GroupedScratch scratch(1, 8, 4, 4);
  const auto attend = [&](const Tensor<2>& q, GroupedScratch& scratch) {
    grouped_attention_rows(q, cached_heads(cache), Mask::causal, out, scratch);
  };
  REFUSES(attend(draw(1, 16, 1), scratch), "S, the number of keys: wanted at least 1, got 0");
  append(cache, k, v);
  REFUSES(attend(draw(1, 16, 1), scratch), "out: wanted shape [1, 16], got [3, 16]");
  REFUSES(attend(draw(1, 12, 1), scratch),
          "groups: wanted G key and value heads that divide H query heads, got H = 3, "
          "G = 2");
  KeyValueHeads without_numbers = cached_heads(cache);
  without_numbers.first_keys.cols = 0;
  REFUSES(grouped_attention_rows(q, without_numbers, Mask::causal, out, scratch),
          "D, the width of a head: wanted at least 1, got 0");
  GroupedScratch small(1, 4, 2, 4);
  const std::string says = "scratch: wanted one made for T = 3, S = 5, H = 4, D = 4 and " +
                           std::to_string(small.scores.shape(0)) + " threads or more, got scores " +
                           shape_text(small.scores.shape()) + ", stretches [2, 4], log_sums [2, 1]";
  REFUSES(attend(draw(3, 16, 1), small), says);
}

TEST_CASE("many queries whose shapes do not fit are refused before any head is computed") {
  const Tensor<2> q = draw(300, 128, 1), k = draw(300, 64, 2), narrow = draw(300, 32, 3);
  REFUSES(by_rows(q, k, narrow, 4, 2), "v: wanted shape [300, 64], got [300, 32]");
  REFUSES(grouped_query_attention(q, k, narrow, 4, 2, Mask::causal),
          "v: wanted shape [300, 64], got [300, 32]");
}

TEST_CASE(
    "refused: scratch with too little of what the call uses; several queries use scores only") {
  const size_t S = 5, H = 4, G = 2, D = 4;
  const GroupedScratch enough(3, S, H, D);
  GroupedScratch few_threads = enough, few_scores = enough, few_stretches = enough,
                 few_sums = enough;
  few_threads.scores = empty(thread_count() - 1, H * S);
  few_scores.scores = empty(thread_count(), 1);
  few_stretches.stretches = empty(H - 1, D);
  few_sums.log_sums = empty(H - 1, 1);
  for (const GroupedScratch& scratch : {few_threads, few_scores, few_stretches, few_sums})
    CHECK_THROWS_AS(expect_room(scratch, 1, S, H, G, D), std::invalid_argument);
  CHECK_THROWS_AS(expect_room(few_scores, 3, S, H, G, D), std::invalid_argument);
  CHECK_NOTHROW(expect_room(few_stretches, 3, S, H, G, D));
  CHECK_NOTHROW(expect_room(few_sums, 3, S, H, G, D));
  for (const size_t many : {size_t(100'000), size_t(10'000'000)})
    CHECK_THROWS_AS(expect_room(enough, 1, many, H, G, D), std::invalid_argument);
}
