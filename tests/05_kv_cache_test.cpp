// What must be true of the cache: what it holds, that decoding with it equals the full forward
// pass, and that a refused call leaves it as it was.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <numbers>
#include <span>
#include <utility>
#include <vector>

#include "03_rope/fast/rope_rows.hpp"
#include "04_causal_attention/multi_head.hpp"
#include "05_kv_cache/babbler/babbler.hpp"
#include "05_kv_cache/concatenated_cache.hpp"
#include "05_kv_cache/kv_cache.hpp"
#include "files/npy.hpp"
#include "support/all_close.hpp"
#include "support/allocations.hpp"
#include "support/apart.hpp"
#include "support/first_difference.hpp"
#include "support/refuses.hpp"

using namespace t2t;

// A score is a sum of D products, each of numbers that were rotated (three roundings more), divided
// by √D: with numbers of size 1 its error is about √(D + 3) · eps, eps = 2^-24. Softmax multiplies
// a weight by 1 ± that, and the weighted mean of values of size up to 4 moves by 4 times as much.
// We allow twice this, since both sides of a comparison round.
static double bound(std::size_t D) { return 2 * 4 * std::sqrt(double(D + 3)) * 0x1p-24; }

/// The tokens of one text, before RoPE.
struct Text {
  Tensor<2> q, k, v;  // [T, H·D] each
};

static Text some_text(std::size_t T, std::size_t C, std::size_t seed) {
  Random random(seed);
  const auto draw = [&] { return random.normal<2>({T, C}); };
  return {draw(), draw(), draw()};
}

static RopeTable table_of(std::size_t D, std::size_t S = 400) {
  return rope_table(S, rope_frequencies(D));
}

/// The reference: the formulas of chapters 03 and 04 over tokens 0 … T − 1 at once. [T, H·D].
static Tensor<2> full_forward(const Text& text, std::size_t T, std::size_t H) {
  const std::size_t D = text.q.shape(1) / H;
  const RopeTable table = table_of(D);
  const auto first = [&](const Tensor<2>& x) -> Tensor<2> {  // [T, H·D]
    return xt::view(x, xt::range(0, T), xt::all());
  };
  const auto rotated = [&](const Tensor<2>& x) { return rope(x, D, table, 0, Pairing::halves); };
  const Tensor<3> q = split_heads(rotated(first(text.q)), H);  // [H, T, D]
  const Tensor<3> k = split_heads(rotated(first(text.k)), H), v = split_heads(first(text.v), H);
  Tensor<3> out = empty(H, T, D);
  for (std::size_t h = 0; h < H; ++h)
    xt::view(out, h) = attention(xt::view(q, h), xt::view(k, h), xt::view(v, h), Mask::causal);
  return merge_heads(out);
}

/// Tokens from … to − 1 through the cache, `chunk` at a time. [to − from, H·D].
static Tensor<2> through_cache(const Text& text, std::size_t from, std::size_t to,
                               std::size_t chunk, KvCache& cache) {
  const std::size_t D = cache.keys.shape(2);
  const RopeTable table = table_of(D);
  Tensor<2> q = text.q;  // rotated below
  // NaN, so that a row which attention does not write is found by the comparison.
  Tensor<2> out = xt::ones<float>({to - from, q.shape(1)}) * NAN;
  AttentionScratch scratch(chunk, cache.keys.shape(1));
  for (std::size_t t = from; t < to; t += chunk) {
    const std::size_t T = std::min(chunk, to - t);
    append_rotated(cache, ConstMatrix(text.k).rows_from(t, T), ConstMatrix(text.v).rows_from(t, T),
                   table, Pairing::halves);
    CHECK(cache.length == t + T);
    if (cache.length < T) continue;  // only in a wrong version: attention would throw
    rope_rows(Matrix(q).rows_from(t, T), D, table, t, Pairing::halves);
    attention_rows(ConstMatrix(q).rows_from(t, T), cached_heads(cache), Mask::causal,
                   Matrix(out).rows_from(t - from, T), scratch);
  }
  return out;
}

static Tensor<2> rows(const Tensor<2>& x, std::size_t from, std::size_t to) {
  return xt::view(x, xt::range(from, to), xt::all());
}

/// The first `length` rows of each head.
static Tensor<3> filled(const Tensor<3>& heads, std::size_t length) {
  return xt::view(heads, xt::all(), xt::range(0, length), xt::all());
}

static Closeness same_bits(const KvCache& a, const KvCache& b) {
  const auto same = [](const Tensor<3>& x, const Tensor<3>& y) {
    return x.shape() == y.shape() && std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0;
  };
  return {a.length == b.length && same(a.keys, b.keys) && same(a.values, b.values),
          fmt::format("length {}, wanted {}; keys: {}; values: {}", a.length, b.length,
                      first_difference(a.keys, b.keys), first_difference(a.values, b.values))};
}

TEST_CASE("append: by hand, each head's numbers go to that group's rows, after those before") {
  KvCache cache = make_kv_cache(2, 4, 2);
  append(cache, Tensor<2>{{1, 2, 3, 4}, {5, 6, 7, 8}},
         Tensor<2>{{10, 20, 30, 40}, {50, 60, 70, 80}});
  CHECK(cache.length == 2);
  append(cache, Tensor<2>{{9, 8, 7, 6}}, Tensor<2>{{90, 80, 70, 60}});
  CHECK(cache.length == 3);
  const Tensor<3> keys = {{{1, 2}, {5, 6}, {9, 8}}, {{3, 4}, {7, 8}, {7, 6}}};
  CHECK(all_close(filled(cache.keys, 3), keys, 0));
  CHECK(all_close(filled(cache.values, 3), Tensor<3>(keys * 10), 0));
}

TEST_CASE("append_rotated: by hand, position p turns a pair by p quarter turns") {
  const RopeTable quarters = rope_table(4, {std::numbers::pi / 2});
  KvCache cache = make_kv_cache(2, 4, 2);
  const Tensor<2> k = {{1, 0, 2, 0}, {1, 0, 2, 0}}, v = {{1, 2, 3, 4}, {5, 6, 7, 8}};
  append_rotated(cache, k, v, quarters, Pairing::halves);
  append_rotated(cache, Tensor<2>{{1, 0, 2, 0}}, Tensor<2>{{9, 8, 7, 6}}, quarters,
                 Pairing::halves);
  CHECK(cache.length == 3);
  const Tensor<3> keys = {{{1, 0}, {0, 1}, {-1, 0}}, {{2, 0}, {0, 2}, {-2, 0}}};
  const Tensor<3> values = {{{1, 2}, {5, 6}, {9, 8}}, {{3, 4}, {7, 8}, {7, 6}}};
  CHECK(all_close(filled(cache.keys, 3), keys, 2 * 0x1p-52));  // π as a double is off by 1.2e-16
  CHECK(all_close(filled(cache.values, 3), values, 0));
  CHECK(k(1, 0) == 1);  // what was handed over is not rotated
}

TEST_CASE("append_rotated: by hand, neighbours turn (1, 2) and (3, 4), halves (1, 3) and (2, 4)") {
  const RopeTable table = rope_table(2, {std::numbers::pi / 2, std::numbers::pi});
  const Tensor<2> k = {{0, 0, 0, 0}, {1, 2, 3, 4}};
  const auto keys = [&](Pairing pairing) {
    KvCache cache = make_kv_cache(1, 2, 4);
    append_rotated(cache, k, k, table, pairing);
    return cache.keys;
  };
  const Tensor<3> neighbours = {{{0, 0, 0, 0}, {-2, 1, -3, -4}}};
  const Tensor<3> halves = {{{0, 0, 0, 0}, {-3, -2, 1, -4}}};
  // cos and sin are rounded once, then two products and a sum, of numbers up to 4.
  CHECK(all_close(keys(Pairing::neighbours), neighbours, 6 * 4 * 0x1p-24));
  CHECK(all_close(keys(Pairing::halves), halves, 6 * 4 * 0x1p-24));
}

TEST_CASE("views: the filled part of a group, where it lies") {
  KvCache cache = make_kv_cache(2, 5, 3);
  const Tensor<2> x = xt::ones<float>({2, 6});
  append(cache, x, x);
  const KeyValueHeads heads = cached_heads(cache);
  CHECK(heads.G == 2);
  CHECK(heads.keys(1).data - cache.keys.data() == 5 * 3);  // behind the S·D numbers of group 0
  CHECK(heads.values(1).data - cache.values.data() == 5 * 3);
  CHECK(heads.keys(1).rows == 2);
  CHECK(heads.values(0).cols == 3);
}

TEST_CASE("keys and values may be parts of one wider matrix") {
  Tensor<2> both = Random(1).normal<2>({4, 13});  // a key, a value, and something else
  const Matrix k = Matrix(both).cols_from(0, 6), v = Matrix(both).cols_from(6, 6);
  KvCache of_parts = make_kv_cache(2, 5, 3), of_copies = of_parts;
  append(of_parts, k, v);
  append(of_copies, copy_of(k), copy_of(v));
  CHECK(all_close(filled(of_parts.keys, 4), filled(of_copies.keys, 4), 0));
  CHECK(all_close(filled(of_parts.values, 4), filled(of_copies.values, 4), 0));
}

TEST_CASE("decode: by hand, equal keys have equal weights: values 2, 4, 9 give means 2, 3, 5") {
  KvCache cache = make_kv_cache(1, 4, 1);
  AttentionScratch scratch(1, 4);
  const float values[] = {2, 4, 9}, means[] = {2, 3, 5};
  for (std::size_t t = 0; t < 3; ++t) {
    append(cache, Tensor<2>{{0}}, Tensor<2>{{values[t]}});
    CHECK(cache.length == t + 1);
    if (cache.length == 0) return;
    Tensor<2> out = {{-1}};
    attention_rows(Tensor<2>{{7}}, cached_heads(cache), Mask::causal, out, scratch);
    CHECK(all_close(out, Tensor<2>{{means[t]}}, 5 * 0x1p-22));  // a few roundings of a 5
  }
}

TEST_CASE("bytes: LLaMA-7B's cache for 2048 tokens, 2 bytes a number, is 1 GiB exactly") {
  CHECK(kv_cache_bytes(32, 32, 2048, 128, 2) == 1073741824);
  CHECK(bytes(make_kv_cache(3, 7, 5)) == 2 * 3 * 7 * 5 * 4);
  CHECK(kv_cache_bytes(1, 3, 7, 5, sizeof(float)) == bytes(make_kv_cache(3, 7, 5)));
}

TEST_CASE("decode equals the full forward pass at every step") {
  const std::size_t T = 23, H = 3, D = 6;
  const Text text = some_text(T, H * D, 1);
  KvCache cache = make_kv_cache(H, 2 * T, D);
  for (std::size_t t = 0; t < T; ++t) {
    const Tensor<2> full = full_forward(text, t + 1, H);  // [t + 1, H·D]
    CHECK(all_close(through_cache(text, t, t + 1, 1, cache), rows(full, t, t + 1), bound(D)));
  }
}

TEST_CASE("prefill, chunks of any size and single tokens agree, past a block of queries too") {
  const std::size_t T = 150, H = 2, D = 8;
  const Text text = some_text(T, H * D, 2);
  const Tensor<2> full = full_forward(text, T, H);
  for (const std::size_t chunk : {1, 5, 16, 70, 150}) {
    KvCache cache = make_kv_cache(H, T + 9, D);
    CAPTURE(chunk);
    CHECK(all_close(through_cache(text, 0, T, chunk, cache), full, bound(D)));
  }
}

TEST_CASE("a babbler's table is drawn with a variance of 1") {
  Random random(3);
  const Tensor<2> table = draw_babbler(16, 2, 4, random).table;  // 4096 numbers
  const double mean_square = xt::mean(xt::square(xt::cast<double>(table)))();
  CHECK(std::abs(mean_square - 1) < 5 * std::sqrt(2.0 / 4096));  // 5 standard deviations
}

TEST_CASE("the caller: prompt and single tokens get the logits of the whole text, computed anew") {
  const std::size_t C = 16, H = 2, S = 64;  // S is ample: a wrong position is still in the table
  Random random(1);
  Babbler babbler = draw_babbler(C, H, S, random);
  KvCache cache = make_kv_cache(H, S, C / H);
  std::vector<int> text = {'T', 'o', 'k', 'e', 'n'};
  std::span<const int> more = text;
  for (int step = 0; step < 6; ++step) {
    const Tensor<2> want = logits_without(babbler, text);
    const float largest = xt::amax(xt::abs(want))();
    // Projection, scores, output projection and logits are sums of up to C products, one after the
    // other: each rounds by about √C · eps. We allow four times this for either side.
    const double rounding = 2 * 4 * 4 * std::sqrt(double(C)) * 0x1p-24;
    CHECK(all_close(logits_with(babbler, more, cache), want, rounding * largest));
    text.push_back(next_byte(want));
    more = std::span(text).last(1);
  }
}

TEST_CASE("the caller: with the cache and without, the same bytes are generated") {
  Random random(2);
  Babbler babbler = draw_babbler(32, 4, 64, random);
  KvCache cache = make_kv_cache(4, 64, 8);
  const std::vector<Step> with = generate_with(babbler, {'o', 'n', 'e'}, 5, cache);
  const std::vector<Step> without = generate_without(babbler, {'o', 'n', 'e'}, 5);
  const auto tokens_of = [](const std::vector<Step>& steps) {
    std::vector<int> tokens;
    for (const Step& step : steps) tokens.push_back(step.token);
    return tokens;
  };
  INFO(first_difference(tokens_of(with), tokens_of(without)));
  CHECK(tokens_of(with) == tokens_of(without));
  for (std::size_t i = 0; i < 5; ++i) {
    CHECK(without[i].kv_rows == 3 + i);
    CHECK(with[i].kv_rows == (i == 0 ? 3 : 1));
  }
}

TEST_CASE("without a causal mask each query sees all that is cached") {
  const Text text = some_text(9, 8, 3);
  KvCache cache = make_kv_cache(1, 12, 8);
  append(cache, text.k, text.v);
  CHECK(cache.length == 9);
  if (cache.length != 9) return;
  AttentionScratch scratch(9, 12);
  Tensor<2> out = empty(4, 8);
  const Tensor<2> q = rows(text.q, 0, 4);
  attention_rows(q, cached_heads(cache), Mask::none, out, scratch);
  CHECK(all_close(out, attention(q, text.k, text.v, Mask::none), bound(8)));
}

TEST_CASE("reset: after it, another text gets what it gets from a new cache") {
  const Text old = some_text(20, 12, 4), text = some_text(20, 12, 5);
  KvCache cache = make_kv_cache(2, 50, 6), fresh = make_kv_cache(2, 50, 6);
  through_cache(old, 0, 20, 7, cache);
  reset(cache);
  CHECK(cache.length == 0);
  CHECK(all_close(through_cache(text, 0, 20, 7, cache), through_cache(text, 0, 20, 7, fresh), 0));
}

TEST_CASE("truncate: a text edited from position 9 on gets what the edited text alone gets") {
  const std::size_t T = 20;
  const Text old = some_text(T, 12, 6);
  Text text = some_text(T, 12, 7);
  for (const auto& [to, from] : {std::pair(&text.q, &old.q), {&text.k, &old.k}, {&text.v, &old.v}})
    xt::view(*to, xt::range(0, 9), xt::all()) = xt::view(*from, xt::range(0, 9), xt::all());
  KvCache cache = make_kv_cache(2, 50, 6);
  through_cache(old, 0, T, T, cache);
  truncate(cache, 9);
  CHECK(cache.length == 9);
  CHECK(all_close(through_cache(text, 9, T, 4, cache), rows(full_forward(text, T, 2), 9, T),
                  bound(6)));
}

TEST_CASE("a cache of 2100 positions, filled in three calls and reset") {
  constexpr std::size_t S = 2100, G = 2, D = 8;
  const RopeTable table = table_of(D, S);
  const Text text = some_text(S, G * D, 11);
  KvCache cache = make_kv_cache(G, S, D);
  for (int round = 0; round < 2; ++round) {
    std::size_t done = 0;
    for (const std::size_t count : {700, 1390, 10}) {
      append_rotated(cache, ConstMatrix(text.k).rows_from(done, count),
                     ConstMatrix(text.v).rows_from(done, count), table, Pairing::halves);
      done += count;
    }
    CHECK(cache.length == S);
    const Tensor<2> rotated = rope(text.k, D, table, 0, Pairing::halves);
    const KeyValueHeads heads = cached_heads(cache);
    for (std::size_t g = 0; g < G; ++g) {
      CHECK(all_close(copy_of(heads.keys(g)), copy_of(ConstMatrix(rotated).head(g, D)),
                      16 * 0x1p-24));
      CHECK(all_close(copy_of(heads.values(g)), copy_of(ConstMatrix(text.v).head(g, D)), 0));
    }
    reset(cache);
    CHECK(cache.length == 0);
  }
  CHECK(kv_cache_bytes(32, 32, std::size_t(1) << 20, 128, 4) == std::size_t(1) << 40);
}

TEST_CASE("a cache of 40,000 positions rotates the last keys as it does the first") {
  constexpr std::size_t S = 40'000, D = 2;
  const RopeTable table = table_of(D, S);
  const Text text = some_text(S, D, 12);
  KvCache cache = make_kv_cache(1, S, D);
  append_rotated(cache, ConstMatrix(text.k).rows_from(0, S - 3),
                 ConstMatrix(text.v).rows_from(0, S - 3), table, Pairing::halves);
  append_rotated(cache, ConstMatrix(text.k).rows_from(S - 3, 3),
                 ConstMatrix(text.v).rows_from(S - 3, 3), table, Pairing::halves);
  const Tensor<2> rotated = rope(text.k, D, table, 0, Pairing::halves);
  CHECK(all_close(copy_of(cached_heads(cache).keys(0)), rotated, 16 * 0x1p-24));
  CHECK(all_close(copy_of(cached_heads(cache).values(0)), text.v, 0));
}

TEST_CASE("rows from length on are not read") {
  const Text text = some_text(10, 12, 8);
  KvCache clean = make_kv_cache(2, 16, 6), dirty = clean;
  dirty.keys.fill(NAN);
  dirty.values.fill(std::numeric_limits<float>::infinity());
  CHECK(all_close(through_cache(text, 0, 10, 3, dirty), through_cache(text, 0, 10, 3, clean), 0));
}

TEST_CASE("decoding allocates nothing") {
  const Text text = some_text(1, 12, 9);
  KvCache cache = make_kv_cache(2, 40, 6);
  AttentionScratch scratch(1, 40);
  Tensor<2> out = empty(1, 12);
  append(cache, text.k, text.v);
  CHECK(cache.length == 1);
  if (cache.length != 1) return;
  attention_rows(text.q, cached_heads(cache), Mask::causal, out, scratch);
  CHECK(allocates_nothing(30, [&] {
    append(cache, text.k, text.v);
    attention_rows(text.q, cached_heads(cache), Mask::causal, out, scratch);
  }));
  const RopeTable table = table_of(6);
  const auto rotated = [&] { append_rotated(cache, text.k, text.v, table, Pairing::halves); };
  CHECK_NOTHROW(rotated());
  CHECK(allocates_nothing(3, rotated));
}

TEST_CASE("PyTorch's causal attention, 13 tokens, 3 heads of 10, in chunks of 4 and one by one") {
  const Text text = {load_npy<2>(T2T_FIXTURES "/q.npy"), load_npy<2>(T2T_FIXTURES "/k.npy"),
                     load_npy<2>(T2T_FIXTURES "/v.npy")};
  const Tensor<2> out = load_npy<2>(T2T_FIXTURES "/out.npy");
  const Tensor<3> keys = load_npy<3>(T2T_FIXTURES "/keys.npy");
  for (const std::size_t chunk : {4, 1}) {
    KvCache cache = make_kv_cache(3, 17, 10);
    CHECK(all_close(through_cache(text, 0, 13, chunk, cache), out, bound(10)));
    // Keys of size up to 4, rotated: two products and their sum, cos and sin rounded before.
    const Tensor<3> filled = xt::view(cache.keys, xt::all(), xt::range(0, 13), xt::all());
    CHECK(all_close(filled, keys, 4 * 4 * 0x1p-24));
  }
}

TEST_CASE("the last position can be filled, and one more is refused") {
  KvCache cache = make_kv_cache(2, 5, 2);
  const Tensor<2> two = xt::ones<float>({2, 4}), three = xt::ones<float>({3, 4});
  CHECK_NOTHROW(append(cache, three, three));
  CHECK_NOTHROW(append(cache, two, two));
  CHECK(cache.length == 5);
}

TEST_CASE("a cache of one head, one position and one number holds one token, and then no more") {
  KvCache cache;
  REQUIRE_NOTHROW(cache = make_kv_cache(1, 1, 1));
  CHECK_NOTHROW(append(cache, Tensor<2>{{3}}, Tensor<2>{{4}}));
  CHECK(all_close(cache.keys, Tensor<3>{{{3}}}, 0));
  CHECK(all_close(cache.values, Tensor<3>{{{4}}}, 0));
  AttentionScratch scratch(1, 1);
  Tensor<2> out = {{-1}};
  CHECK_NOTHROW(attention_rows(Tensor<2>{{7}}, cached_heads(cache), Mask::causal, out, scratch));
  CHECK(all_close(out, Tensor<2>{{4}}, 0));
  REFUSES(append(cache, Tensor<2>{{3}}, Tensor<2>{{4}}),
          "cache: length 1 and T = 1 more positions, wanted at most S = 1 in all");
  CHECK_NOTHROW(reset(cache));
  CHECK_NOTHROW(append(cache, Tensor<2>{{5}}, Tensor<2>{{6}}));
  CHECK(all_close(cache.values, Tensor<3>{{{6}}}, 0));
}

TEST_CASE("a cache by concatenation holds the same rows, and writes all of them at each call") {
  const std::size_t T = 9, G = 2, D = 3;
  const Text text = some_text(T, G * D, 12);
  KvCache cache = make_kv_cache(G, T + 1, D);
  ConcatenatedCache concatenated = make_concatenated_cache(G, D);
  REQUIRE(ending_apart([concatenated, &text]() mutable {
            concatenate(concatenated, text.k, text.v);
          }) == "returned");
  std::size_t written = 0;
  for (std::size_t t = 0; t < T; t += 3) {
    const ConstMatrix k = ConstMatrix(text.k).rows_from(t, 3);
    const ConstMatrix v = ConstMatrix(text.v).rows_from(t, 3);
    append(cache, k, v);
    written += concatenate(concatenated, k, v);
  }
  const auto filled = [&](const Tensor<3>& storage) -> Tensor<3> {  // [G, T, D]
    return xt::view(storage, xt::all(), xt::range(0, T), xt::all());
  };
  CHECK(all_close(concatenated.keys, filled(cache.keys), 0));
  CHECK(all_close(concatenated.values, filled(cache.values), 0));
  CHECK(written == 2 * G * D * sizeof(float) * (3 + 6 + 9));
  const KeyValueHeads heads = concatenated_heads(concatenated);
  CHECK(heads.S() == concatenated.keys.shape(1));
  INFO("head 1 begins after half of the numbers, in the cache's own memory");
  CHECK(std::size_t(heads.keys(1).data - concatenated.keys.data()) == concatenated.keys.size() / 2);
  CHECK(std::size_t(heads.values(1).data - concatenated.values.data()) ==
        concatenated.values.size() / 2);
}

TEST_CASE("refused: joining rows of another width, and a length set by hand above S") {
  ConcatenatedCache concatenated = make_concatenated_cache(2, 3);
  const Tensor<2> row = xt::ones<float>({1, 6}), narrow = xt::ones<float>({1, 5});
  REFUSES(concatenate(concatenated, narrow, row), "k: wanted shape [1, 6], got [1, 5]");
  REFUSES(concatenate(concatenated, row, narrow), "v: wanted shape [1, 6], got [1, 5]");
  CHECK(concatenated.keys.size() == 0);
  CHECK_THROWS_AS(make_concatenated_cache(0, 3), std::invalid_argument);
  CHECK_THROWS_AS(make_concatenated_cache(2, 0), std::invalid_argument);

  KvCache cache = make_kv_cache(2, 4, 3);
  cache.length = 5;
  const char* message = "cache.length: wanted at most S = 4, got 5";
  REFUSES(cached_heads(cache), message);
  REFUSES(append(cache, row, row), message);
}

TEST_CASE("refused: a cache whose values have another number of positions than its keys") {
  const Tensor<2> row = xt::ones<float>({1, 4});
  for (const std::size_t S : {3, 5}) {
    KvCache cache = make_kv_cache(2, 4, 2);
    cache.values = empty(2, S, 2);
    const std::string message =
        fmt::format("cache.values: wanted shape [2, 4, 2], got [2, {}, 2]", S);
    REFUSES(append(cache, row, row), message);
    REFUSES(append_rotated(cache, row, row, table_of(2), Pairing::halves), message);
    REFUSES(cached_heads(cache), message);
  }
}

TEST_CASE("a refused append says why, and leaves the cache bit by bit as it was") {
  const Text text = some_text(8, 12, 10);
  KvCache cache = make_kv_cache(2, 10, 6);
  append(cache, text.k, text.v);
  const KvCache before = cache;
  const Tensor<2> three = xt::ones<float>({3, 12}), none = empty(0, 12), one = empty(1, 12);
  const Tensor<2> narrow = empty(3, 10);
  const RopeTable table = table_of(6), short_table = table_of(6, 9), other_table = table_of(8);
  const auto refuses = [&](const Tensor<2>& k, const Tensor<2>& v, const RopeTable* turn,
                           const std::string& message) {
    CAPTURE(message);
    REFUSES(turn ? append_rotated(cache, k, v, *turn, Pairing::halves) : append(cache, k, v),
            message);
    CHECK(same_bits(cache, before));
    cache = before;
  };
  const char* full = "cache: length 8 and T = 3 more positions, wanted at most S = 10 in all";
  refuses(three, three, nullptr, full);
  refuses(three, three, &table, full);
  refuses(none, none, nullptr, "T, the positions to append: wanted at least 1, got 0");
  refuses(none, none, &table, "T, the positions to append: wanted at least 1, got 0");
  refuses(narrow, three, nullptr, "k: wanted shape [3, 12], got [3, 10]");
  refuses(three, narrow, nullptr, "v: wanted shape [3, 12], got [3, 10]");
  refuses(one, three, &table, "v: wanted shape [1, 12], got [3, 12]");
  const Tensor<2> two = xt::ones<float>({2, 12});
  refuses(two, two, &short_table, "position 9: the table ends at 8");
  refuses(one, one, &other_table, "table.cos: wanted shape [400, 3], got [400, 4]");
}

TEST_CASE("many positions that do not fit are refused, and the cache stays as it was") {
  KvCache cache = make_kv_cache(4, 599, 32);
  const KvCache before = cache;
  const Tensor<2> many = xt::ones<float>({600, 128});
  const char* message = "cache: length 0 and T = 600 more positions, wanted at most S = 599 in all";
  REFUSES(append(cache, many, many), message);
  REFUSES(append_rotated(cache, many, many, table_of(32, 600), Pairing::halves), message);
  CHECK(same_bits(cache, before));
}

TEST_CASE("an odd head width can't be rotated, and the cache stays empty") {
  KvCache cache = make_kv_cache(2, 4, 3);
  const KvCache before = cache;
  const Tensor<2> row = xt::ones<float>({1, 6});
  REFUSES(append_rotated(cache, row, row, table_of(4), Pairing::neighbours),
          "D: wanted an even number above 0, got 3");
  CHECK(same_bits(cache, before));
}

TEST_CASE("refused: a cache of no heads, positions or width, and truncate past the end") {
  REFUSES(make_kv_cache(0, 4, 2), "G, the number of key and value heads: wanted at least 1, got 0");
  REFUSES(make_kv_cache(2, 0, 2), "S, the positions of the cache: wanted at least 1, got 0");
  REFUSES(make_kv_cache(2, 4, 0), "D, the width of a head: wanted at least 1, got 0");
  KvCache cache = make_kv_cache(2, 4, 2);
  REFUSES(truncate(cache, 1), "position: wanted at most 0, got 1");
  CHECK_NOTHROW(truncate(cache, 0));
}

TEST_CASE("refused: attention over an empty cache, of other shapes, or with too little scratch") {
  KvCache cache = make_kv_cache(2, 4, 2);
  AttentionScratch scratch(4, 4), small(1, 1);
  Tensor<2> out = empty(1, 4), two_rows = empty(2, 4);
  const Tensor<2> q = xt::ones<float>({1, 4}), wide = empty(1, 6);
  REFUSES(attention_rows(q, cached_heads(cache), Mask::causal, out, scratch),
          "S, the number of keys: wanted at least 1, got 0");
  append(cache, q, q);
  REFUSES(attention_rows(wide, cached_heads(cache), Mask::causal, out, scratch),
          "q: wanted shape [1, 4], got [1, 6]");
  REFUSES(attention_rows(q, cached_heads(cache), Mask::causal, two_rows, scratch),
          "out: wanted shape [1, 4], got [2, 4]");
  CHECK_THROWS_AS(attention_rows(two_rows, cached_heads(cache), Mask::causal, two_rows, scratch),
                  std::invalid_argument);
  append(cache, q, q);
  CHECK_THROWS_AS(attention_rows(q, cached_heads(cache), Mask::causal, out, small),
                  std::invalid_argument);
}
