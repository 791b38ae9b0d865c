// What must be true of flash attention on the CPU: key by key, and block by block.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "08_block/block.hpp"
#include "11_flash_attention/flash_attention.hpp"
#include "11_flash_attention/online_softmax.hpp"
#include "11_flash_attention/register_tiles.hpp"
#include "lanes.hpp"
#include "linalg.hpp"
#include "rows.hpp"
#include "support/all_close.hpp"
#include "support/allocations.hpp"
#include "support/apart.hpp"
#include "support/attention_in_double.hpp"
#include "support/first_difference.hpp"
#include "support/refuses.hpp"

using namespace t2t;
using std::size_t;

static constexpr double u = 0x1p-24;  // one rounding of a number up to 1

static Tensor<2> draw(size_t rows, size_t cols, size_t seed) {
  return Random(seed).normal<2>({rows, cols});
}
static Tensor<2> by_rows(const Tensor<2>& q, const Tensor<2>& k, const Tensor<2>& v, size_t H,
                         size_t G, const ScoreRule& mask = Mask::causal, FlashBlocks blocks = {}) {
  Tensor<2> out = Tensor<2>::from_shape(q.shape());
  FlashScratch scratch(H, G, q.shape(1) / H, blocks);
  flash_attention_rows(q, side_by_side(k, v, G), mask, out, scratch);
  return out;
}
/// Reads from a cache that has room for more keys; that room is filled with wrong numbers.
static Tensor<2> by_cache(const Tensor<2>& q, const Tensor<2>& k, const Tensor<2>& v, size_t H,
                          size_t G, const ScoreRule& mask = Mask::causal) {
  KvCache cache = make_kv_cache(G, k.shape(0) + 5, k.shape(1) / G);
  cache.keys.fill(3), cache.values.fill(1000);
  append(cache, k, v);
  Tensor<2> out = Tensor<2>::from_shape(q.shape());
  FlashScratch scratch(H, G, q.shape(1) / H);
  flash_attention_rows(q, cached_heads(cache), mask, out, scratch);
  return out;
}
// A sum of n terms is off by about √n/2 · u times its largest partial sum, since its roundings go
// up about as often as down. A score is a sum of D terms, and its error changes the weight by the
// same share; out is a sum of S terms, rounded once more for each block. Partial sums reach about
// 4; the bound is twice that.
static double bound(size_t D, size_t S) {
  return 8 * (std::sqrt(double(D)) / 2 + std::sqrt(double(S)) / 2) * u;
}

static const float ln2 = std::log(2.f);

TEST_CASE("by hand: four keys, one after the other") {
  // Scores ln 1, ln 2, ln 4, ln 1 with values 8, 4, 2, 16: weights 1/8, 2/8, 4/8, 1/8, mean 5.
  OnlineSoftmax so_far(1);
  const auto takes = [&](float score, float value, float highest, float sum, float values) {
    take(so_far, score, std::vector<float>{value});
    const Tensor<1> got = {so_far.highest, so_far.sum, so_far.values(0)};
    const Tensor<1> want = {highest, sum, values};
    CHECK(all_close(got, want, 16 * 8 * u));  // numbers up to 16, a few roundings each
  };
  takes(0, 8, 0, 1, 8);
  takes(ln2, 4, ln2, 1.5f, 8);           // the first counts half now: 8/2 + 4
  takes(2 * ln2, 2, 2 * ln2, 1.75f, 6);  // 8/2 + 2
  takes(0, 16, 2 * ln2, 2, 10);          // not above the highest: 6 + 16/4
  CHECK(std::abs(mean(so_far)(0) - 5) <= 16 * 4 * u);
}

TEST_CASE("by hand: the same four keys in blocks of 1, 2, 3 and 4") {
  // D = 4, so that √D = 2. Products 0, 2·ln 2, 4·ln 2 and 0 make the scores ln 1, ln 2, ln 4, ln 1.
  // With 2 keys a block, out is 40/11 when kept does not shrink l, 7 when it does not shrink o,
  // and 56/11 when neither shrinks. Without the division by √D out is 36/11, without the last key
  // 24/7.
  Tensor<2> q = xt::zeros<float>({1, 4}), k = xt::zeros<float>({4, 4});
  Tensor<2> v = xt::zeros<float>({4, 4}), want = xt::zeros<float>({1, 4});
  q(0, 0) = 2, k(1, 0) = ln2, k(2, 0) = 2 * ln2;
  v(0, 0) = 8, v(1, 0) = 4, v(2, 0) = 2, v(3, 0) = 16, want(0, 0) = 5;
  REQUIRE(ending_apart([&] { online_attention(q, k, v, Mask::causal); }) == "returned");
  for (const size_t keys : {1, 2, 3, 4}) {
    CAPTURE(keys);
    const auto attend = [&] { return by_rows(q, k, v, 1, 1, Mask::causal, {48, keys}); };
    REQUIRE(ending_apart(attend) == "returned");  // all blocks of keys come to an end
    CHECK(all_close(attend(), want, 16 * 4 * u));
  }
}

TEST_CASE("by hand: a product of tiles, and one that is added to what kept leaves") {
  const size_t R = 2 * Lanes::size;
  const Tensor<2> a = {{1, 2}, {3, 4}, {5, 6}}, transposed = xt::transpose(a);
  Tensor<2> x = empty(2, R), y = xt::ones<float>({size_t(3), R}) * NAN;
  Tensor<1> kept = empty(R);
  for (size_t r = 0; r < R; ++r) x(0, r) = float(r), x(1, r) = 1, kept(r) = float(r) / 2;
  multiply_tiles(a, x, y);
  for (size_t i = 0; i < 3; ++i)
    for (size_t r = 0; r < R; ++r) CHECK(y(i, r) == a(i, 0) * float(r) + a(i, 1));
  y.fill(8);
  add_transposed_tiles(transposed, x, row(kept), y);
  for (size_t i = 0; i < 3; ++i)
    for (size_t r = 0; r < R; ++r) CHECK(y(i, r) == (a(i, 0) + 4) * float(r) + a(i, 1));
}

TEST_CASE("tiles of any size equal products in float64, and write no other numbers") {
  for (const size_t I : {1, 2, 5, 8, 9, 15, 64})
    for (const size_t C : {1, 3, 64})
      for (const size_t registers : {1, 2, 3, 4, 8}) {
        CAPTURE(I);
        CAPTURE(C);
        CAPTURE(registers);
        const size_t R = registers * Lanes::size;
        const Tensor<2> a = draw(I, C, 1), transposed = xt::transpose(a), x = draw(C, R, 2);
        const Tensor<2> before = draw(I, R + 1, 3), kept = draw(1, R, 4);
        Tensor<2> product = before, added = before, want_product = before, want_added = before;
        multiply_tiles(a, x, Matrix(product).cols_from(0, R));
        add_transposed_tiles(transposed, x, row(kept, 0), Matrix(added).cols_from(0, R));
        for (size_t i = 0; i < I; ++i)
          for (size_t r = 0; r < R; ++r) {
            double sum = 0;
            for (size_t c = 0; c < C; ++c) sum += double(a(i, c)) * x(c, r);
            want_product(i, r) = float(sum);
            want_added(i, r) = float(sum + double(kept(0, r)) * before(i, r));
          }
        // As above, with partial sums up to 4·√C.
        const double bound = 8 * std::sqrt(double(C)) * (std::sqrt(double(C)) + 1) * u;
        CHECK(all_close(product, want_product, bound));
        CHECK(all_close(added, want_added, bound));
      }
}

TEST_CASE("keys may be taken in any order and in any parts; a masked key changes nothing") {
  // Scores from −60 to 60, so that the parts' highest scores lie far apart.
  const size_t D = 3, S = 12;
  const Tensor<2> v = draw(S, D, 1);
  const auto part = [&](size_t from, size_t to) {
    OnlineSoftmax part(D);
    for (size_t s = from; s < to; ++s) take(part, 60 * std::cos(float(3 * s)), row(v, s));
    return part;
  };
  const Tensor<1> all = mean(part(0, S));
  const OnlineSoftmax parts[] = {part(0, 5), part(5, 6), part(6, S)};
  std::vector<int> order = {0, 1, 2};
  do {
    OnlineSoftmax joined(D);
    take(joined, -INFINITY, row(v, 0));
    join(joined, OnlineSoftmax(D));
    for (const int p : order) join(joined, parts[p]);
    // A weight of 0 would not do: 0 times NaN is NaN.
    take(joined, -INFINITY, std::vector<float>(D, NAN));
    CHECK(all_close(mean(joined), all, 16 * u));  // at most 12 terms, values up to about 2
  } while (std::ranges::next_permutation(order).found);
}

TEST_CASE("by hand: parts are joined whose highest scores lie far apart, on either side of 0") {
  // Beside a score that is 2000 higher a key has no weight; of equals each has half. None of these
  // scores has an exponential that is a float, except relative to the highest.
  const auto part = [](float score, float value) {
    OnlineSoftmax part(1);
    take(part, score, std::vector<float>{value});
    return part;
  };
  const auto joined = [&](float first, float second) {
    OnlineSoftmax sum = part(first, 3);
    join(sum, part(second, 5));
    return Tensor<1>{sum.highest, sum.sum, mean(sum)(0)};
  };
  for (const float high : {1000.0f, -1000.0f, 3e38f, -1e37f}) {
    CAPTURE(high);
    const float low = std::min(high - 2000, high * (high > 0 ? 0.5f : 2));
    CHECK(all_close(joined(high, low), Tensor<1>{high, 1, 3}, 0));
    CHECK(all_close(joined(low, high), Tensor<1>{high, 1, 5}, 0));
    CHECK(all_close(joined(high, high), Tensor<1>{high, 2, 4}, 0));
  }
  // Odds of 1 to 3 at scores near -1000: the mean is 8/4 + 4·3/4.
  OnlineSoftmax sum = part(-1000, 8);
  join(sum, part(-1000 + std::log(3.f), 4));
  // Near 1000 a score is rounded by at most 2^-15, which changes the mean by 4 · 3/16 of that;
  // twice.
  CHECK(std::abs(mean(sum)(0) - 5) <= 0.75 * 0x1p-14);

  OnlineSoftmax none(1);
  join(none, OnlineSoftmax(1));
  CHECK(none.sum == 0);
  join(none, part(-1000, 8));
  CHECK(all_close(mean(none), Tensor<1>{8}, 0));
  join(none, OnlineSoftmax(1));
  CHECK(all_close(mean(none), Tensor<1>{8}, 0));
}

TEST_CASE("float64 agrees at odd sizes: in blocks, from rows and from a cache, and key by key") {
  for (const size_t D : {1, 10, 64})
    for (const size_t S : {1, 31, 33, 127, 300})
      for (const size_t start : {size_t(0), S / 3, S - 1}) {
        CAPTURE(D);
        CAPTURE(S);
        CAPTURE(start);
        const size_t T = S - start;
        const Tensor<2> q = draw(T, 6 * D, D), k = draw(S, 2 * D, S), v = draw(S, 2 * D, T);
        const Tensor<2> want = attention_in_double(q, k, v, 6, 2, Mask::causal);
        CHECK(all_close(by_rows(q, k, v, 6, 2), want, bound(D, S)));
        CHECK(all_close(by_cache(q, k, v, 6, 2), want, bound(D, S)));

        const Tensor<2> q0 = draw(T, D, D), k0 = draw(S, D, S), v0 = draw(S, D, T);
        CHECK(all_close(online_attention(q0, k0, v0, Mask::causal),
                        attention_in_double(q0, k0, v0, 1, 1, Mask::causal), bound(D, S)));
      }
}

TEST_CASE("any size of block gives the same result, for any number of groups") {
  const size_t D = 9, S = 70;
  for (const size_t G : {1, 2, 3, 6})
    for (const Mask mask : {Mask::causal, Mask::none}) {
      const size_t T = mask == Mask::causal ? 50 : 90;  // without a mask there may be more queries
      const Tensor<2> q = draw(T, 6 * D, G), k = draw(S, G * D, 2), v = draw(S, G * D, 3);
      const Tensor<2> want = attention_in_double(q, k, v, 6, G, mask);
      for (const size_t rows : {1, 4, 13, 48, 400})
        for (const size_t keys : {1, 2, 7, 16, 69, 70, 256}) {
          CAPTURE(G);
          CAPTURE(rows);
          CAPTURE(keys);
          CHECK(all_close(by_rows(q, k, v, 6, G, mask, {rows, keys}), want, bound(D, S)));
        }
    }
}

TEST_CASE("key by key without a mask: each query sees all keys, and there may be more queries") {
  const size_t D = 9, S = 70;
  for (const size_t T : {50, 90}) {
    CAPTURE(T);
    const Tensor<2> q = draw(T, D, 1), k = draw(S, D, 2), v = draw(S, D, 3);
    const auto attend = [&] { return online_attention(q, k, v, Mask::none); };
    REQUIRE(ending_apart(attend) == "returned");
    CHECK(all_close(attend(), attention_in_double(q, k, v, 1, 1, Mask::none), bound(D, S)));
  }
}

TEST_CASE("heads as wide as those of large models") {
  const size_t D = 128, S = 70;
  const Tensor<2> q = draw(50, 2 * D, 1), k = draw(S, D, 2), v = draw(S, D, 3);
  const Tensor<2> want = attention_in_double(q, k, v, 2, 1, Mask::causal);
  CHECK(all_close(by_rows(q, k, v, 2, 1, Mask::causal, {13, 16}), want, bound(D, S)));
}

TEST_CASE("other rules for scores: a factor, a cap, and both with a window") {
  const size_t H = 6, G = 2, D = 9, S = 150, T = 70;
  const Tensor<2> q = draw(T, H * D, 1), k = draw(S, G * D, 2), v = draw(S, G * D, 3);
  for (const ScoreRule& rule : other_rules()) {
    CAPTURE(rule.factor);
    CAPTURE(rule.cap);
    const Tensor<2> want = attention_in_double(q, k, v, H, G, rule);
    for (const size_t keys : {7, 64, 256})
      CHECK(all_close(by_rows(q, k, v, H, G, rule, {13, keys}), want, 5 * bound(D, S)));
  }
}

TEST_CASE("flash_kernel keeps a rule's factor and cap, for a single query as for several") {
  const size_t H = 6, G = 2, D = 9, S = 150;
  const AttentionKernel kernel = flash_kernel(H, G, D, S);
  const Tensor<2> k = draw(S, G * D, 2), v = draw(S, G * D, 3);
  for (const size_t T : {1, 70})
    for (const ScoreRule& rule : other_rules()) {
      CAPTURE(T);
      CAPTURE(rule.factor);
      CAPTURE(rule.cap);
      const Tensor<2> q = draw(T, H * D, 1);
      Tensor<2> out = empty(T, H * D);
      kernel(q, side_by_side(k, v, G), rule, out);
      CHECK(all_close(out, attention_in_double(q, k, v, H, G, rule), 5 * bound(D, S)));
    }
}

TEST_CASE("sliding windows: key by key, in blocks of any size, from rows and from a cache") {
  const size_t H = 6, G = 2, D = 9, S = 150;
  for (const size_t T : {S, size_t(70), size_t(1)})
    for (const size_t window : windows_of(S)) {
      CAPTURE(T);
      CAPTURE(window);
      const Mask mask = Mask::sliding(window);
      const Tensor<2> q = draw(T, H * D, 1), k = draw(S, G * D, 2), v = draw(S, G * D, 3);
      const Tensor<2> want = attention_in_double(q, k, v, H, G, mask);
      CHECK(all_close(by_cache(q, k, v, H, G, mask), want, bound(D, S)));
      for (const size_t rows : {1, 13, 48})
        for (const size_t keys : {1, 7, 64, 256}) {
          CAPTURE(rows);
          CAPTURE(keys);
          const FlashBlocks blocks = {rows, keys};
          CHECK(all_close(by_rows(q, k, v, H, G, mask, blocks), want, bound(D, S)));
        }
      const Tensor<2> q0 = draw(T, D, 4), k0 = draw(S, D, 5), v0 = draw(S, D, 6);
      CHECK(all_close(online_attention(q0, k0, v0, mask),
                      attention_in_double(q0, k0, v0, 1, 1, mask), bound(D, S)));
    }
}

TEST_CASE("keys that no query of a block sees are never read") {
  const size_t T = 32, S = 200, D = 8;
  const Mask mask = Mask::sliding(20);  // together the queries see keys 149 to 199
  const Tensor<2> q = draw(T, D, 1);
  Tensor<2> k = draw(S, D, 2), v = draw(S, D, 3);
  const Tensor<2> want = attention_in_double(q, k, v, 1, 1, mask);
  for (size_t s = 0; s < 149; ++s)
    std::ranges::fill(row(k, s), NAN), std::ranges::fill(row(v, s), NAN);
  CHECK(all_close(by_rows(q, k, v, 1, 1, mask), want, bound(D, S)));
}

TEST_CASE("scores that rise or fall by hundreds along the text neither overflow nor vanish") {
  // q = 1, so a score is √D times the key: ±300 over 40 keys. e^300 is beyond float32.
  const size_t D = 4, S = 40;
  const Tensor<2> q = xt::ones<float>({S, D}), v = draw(S, D, 1);
  for (const float slope : {7.5f, -7.5f}) {
    CAPTURE(slope);
    Tensor<2> k = empty(S, D);
    for (size_t s = 0; s < S; ++s) std::ranges::fill(row(k, s), slope * float(s) / 2);
    const Tensor<2> want = attention_in_double(q, k, v, 1, 1, Mask::causal);
    CHECK(all_close(online_attention(q, k, v, Mask::causal), want, bound(D, S)));
    for (const size_t keys : {3, 16})  // exact: multiples of 1/4, so only the mean is rounded
      CHECK(all_close(by_rows(q, k, v, 1, 1, Mask::causal, {8, keys}), want, bound(D, S)));
  }
}

TEST_CASE("a change of later keys or of the number of threads changes no earlier bit") {
  const size_t H = 6, G = 2, D = 8, S = 150;
  const Tensor<2> q = draw(S, H * D, 1);
  Tensor<2> k = draw(S, G * D, 2), v = draw(S, G * D, 3);
  set_threads(1);
  const Tensor<2> before = by_rows(q, k, v, H, G);
  set_threads(2);
  CHECK(all_close(by_rows(q, k, v, H, G), before, 0));
  for (size_t s = 77; s < S; ++s) std::ranges::fill(row(k, s), 5), std::ranges::fill(row(v, s), 9);
  const Tensor<2> after = by_rows(q, k, v, H, G);
  for (size_t t = 0; t < S; ++t) {
    CAPTURE(t);
    INFO(first_difference(row(after, t), row(before, t)));
    CHECK(std::ranges::equal(row(before, t), row(after, t)) == (t < 77));
  }
}

TEST_CASE("what a call leaves in its scratch memory changes no bit of the next") {
  const size_t H = 6, G = 2, D = 9, T = 20;
  const Tensor<2> q = draw(T, H * D, 1), k = draw(T, G * D, 2), v = draw(T, G * D, 3);
  const Tensor<2> nan = xt::ones<float>({T, G * D}) * NAN;
  FlashScratch scratch(H, G, D);
  Tensor<2> out = empty(T, H * D);
  const KeyValueHeads clean = side_by_side(k, v, G);
  for (const auto& [keys, values] : {std::pair(&nan, &v), std::pair(&k, &nan)}) {
    const KeyValueHeads spoiled = side_by_side(*keys, *values, G);
    flash_attention_rows(q, spoiled, Mask::causal, out, scratch);
    CAPTURE(out(T - 1, H * D - 1));
    CHECK(std::isnan(out(T - 1, H * D - 1)));
    flash_attention_rows(q, clean, Mask::causal, out, scratch);
    CHECK(all_close(out, by_rows(q, k, v, H, G), 0));
  }
}

TEST_CASE("scratch memory is the same for every length, and a call allocates nothing") {
  FlashScratch scratch(9, 3, 64);
  const size_t of_thread = sizeof(float) * 48 * (2 * 64 + 64 + 3);
  CHECK(scratch.bytes() == scratch.threads() * of_thread);
  for (const size_t T : {3, 200}) {
    const Tensor<2> q = draw(T, 9 * 64, 1), k = draw(T, 3 * 64, 2), v = draw(T, 3 * 64, 3);
    const KeyValueHeads heads = side_by_side(k, v, 3);
    Tensor<2> out = empty(T, 9 * 64);
    CHECK(
        allocates_nothing(1, [&] { flash_attention_rows(q, heads, Mask::causal, out, scratch); }));
  }
}

TEST_CASE("chapter 08's block with flash_kernel computes what its formula does, in chunks too") {
  const size_t T = 75;
  const BlockSettings settings{.C = 48, .H = 6, .G = 2, .D = 8, .F = 40};
  Random random(1);
  const BlockWeights weights = draw_block(settings, random);
  const Tensor<2> x = draw(T, 48, 2);
  const Tensor<2> want = block(x, weights, settings, block_rope_table(settings, T));
  for (const size_t chunk : {T, size_t(16), size_t(1)}) {
    CAPTURE(chunk);
    CachedAttention attention({&settings, 1}, T, chunk, 1, flash_kernel(6, 2, 8, T));
    BlockScratch scratch(settings, chunk);
    Tensor<2> y = x;
    for (size_t t = 0; t < T; t += chunk) {
      const Run run{0, t, std::min(chunk, T - t)};
      block_rows(Matrix(y).rows_from(t, run.rows), run, Block(settings, weights),
                 {.attention = std::ref(attention)}, scratch);
    }
    // As chapter 08's bound: sums of C, D, T, H·D and F terms follow one another; numbers up to 8.
    const double terms = 4 * std::sqrt(48.0) + 4 * std::sqrt(8.0) + std::sqrt(75.0) +
                         std::sqrt(48.0) + std::sqrt(40.0);
    CHECK(all_close(y, want, terms * u * 8));
  }
}

TEST_CASE("bad input is refused, and the message names it") {
  const Tensor<2> q = draw(3, 12, 1), k = draw(5, 8, 2), v = draw(5, 8, 3);
  REFUSES(by_rows(q, k, v, 3, 2),
          "groups: wanted G key and value heads that divide H query heads, got H = 3, "
          "G = 2");
  REFUSES(by_rows(q, k, v, 3, 1),
          "q: wanted whole heads of width D = 8, got 12 "
          "columns");
  REFUSES(by_rows(k, q, q, 2, 2),
          "causal mask: wanted at least as many keys as queries, got 3 and 5");
  REFUSES(by_rows(q, k, v, 3, 1, Mask::causal, {48, 0}),
          "keys of a block: wanted at least 1, got 0");
  REFUSES(by_rows(q, k, v, 3, 1, Mask::causal, {0, 256}),
          "queries of a block: wanted at least 1, got 0");
  REFUSES(online_attention(q, k, v, Mask::none), "k: wanted shape [5, 12], got [5, 8]");
  REFUSES(mean(OnlineSoftmax(4)), "mean: wanted at least one key that is not masked, got none");
  OnlineSoftmax so_far(4);
  REFUSES(take(so_far, 0, row(q, 0)), "v: wanted shape [4], got [12]");
  REFUSES(join(so_far, OnlineSoftmax(3)), "other.values: wanted shape [4], got [3]");

  KvCache cache = make_kv_cache(2, 8, 4);
  FlashScratch scratch(4, 2, 4);
  Tensor<2> out = empty(3, 16), narrow = empty(3, 12);
  const auto attend = [&](Tensor<2>& out, FlashScratch& scratch) {
    flash_attention_rows(draw(3, 16, 1), cached_heads(cache), Mask::causal, out, scratch);
  };
  REFUSES(attend(out, scratch), "S, the number of keys: wanted at least 1, got 0");
  append(cache, k, v);
  REFUSES(attend(narrow, scratch), "out: wanted shape [3, 16], got [3, 12]");
  FlashScratch other(2, 2, 4);
  const std::string threads = std::to_string(other.threads());
  const std::string says = "scratch: made for H = 2, G = 2, D = 4 and " + threads +
                           " threads, wanted H = 4, G = 2, D = 4 and " + threads;
  REFUSES(attend(out, other), says);

  // Threads that come into use later have no room in the scratch memory.
  const int before = int(thread_count());
  set_threads(1);
  FlashScratch of_one(4, 2, 4);
  set_threads(2);
  if (thread_count() == 2)  // with the race detector there are always three
    REFUSES(
        attend(out, of_one),
        "scratch: made for H = 4, G = 2, D = 4 and 1 threads, wanted H = 4, G = 2, D = 4 and 2");
  set_threads(before);
}
