// What must be true of positions: sinusoids, learned tables, ALiBi, T5's buckets, Shaw's vectors,
// RoPE in both pairings, as formula and as row kernel, and its scalings.
#include <doctest/doctest.h>
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <string>

#include "03_rope/fast/rope_rows.hpp"
#include "03_rope/positions/positions.hpp"
#include "03_rope/scaling/rope_scaling.hpp"
#include "files/npy.hpp"
#include "linalg.hpp"
#include "support/all_close.hpp"
#include "support/allocations.hpp"
#include "support/apart.hpp"
#include "support/first_difference.hpp"
#include "support/refuses.hpp"

using namespace t2t;

static constexpr double u = 0x1p-24;  // half a last digit: what rounding a number to float loses
static constexpr float infinity = std::numeric_limits<float>::infinity();
static constexpr double few_doubles = 16 * 0x1p-53 / u;  // a few roundings of a double
static constexpr std::array pairings = {Pairing::neighbours, Pairing::halves};
static constexpr std::array factors = {1.0, 4.0, 16.0, 40.0};

static Tensor<1> fixture(const std::string& name) {
  return load_npy<1>(T2T_FIXTURES "/" + name + ".npy");
}
static Frequencies doubles(const Tensor<1>& values) { return {values.begin(), values.end()}; }
static Frequencies frequencies_in(const std::string& name) { return doubles(fixture(name)); }
/// [T, H, D] as [T, H·D].
static Tensor<2> side_by_side(const Tensor<3>& x) {
  return xt::reshape_view(x, {x.shape(0), x.shape(1) * x.shape(2)});
}
static RopeTable table_for(std::size_t S, std::size_t D) {
  return rope_table(S, rope_frequencies(D));
}
/// The row kernel, called as the formula is.
static Tensor<2> by_rows(Tensor<2> x, std::size_t D, const RopeTable& table, std::size_t start,
                         Pairing pairing) {
  rope_rows(x, D, table, start, pairing);
  return x;
}
static double largest(const Tensor<2>& x) {
  double most = 0;
  for (const float value : x) most = std::max(most, double(std::abs(value)));
  return most;
}
static double dot(const Tensor<2>& a, const Tensor<2>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += double(a.data()[i]) * double(b.data()[i]);
  return sum;
}
/// Every got / want is 1, but for so many roundings.
static Closeness relatively_close(const Frequencies& got, const Frequencies& want,
                                  double roundings) {
  if (got.size() != want.size()) return {false, "sizes differ"};
  Tensor<1> off = empty(want.size());
  for (std::size_t i = 0; i < want.size(); ++i) off(i) = float(got[i] / want[i] - 1);
  return all_close(off, Tensor<1>(xt::zeros<float>({want.size()})), roundings * u);
}

// cos and sin are rounded once, then two products and a sum: 4 roundings of numbers up to 2·|x|.
static double rotated_bound(const Tensor<2>& x) { return 6 * u * largest(x); }

TEST_CASE("by hand: 90 degrees take (3, 4) to (-4, 3), 180 degrees to (-3, -4)") {
  const Frequencies quarter = {std::numbers::pi / 2};
  const Tensor<2> x = {{3, 4}, {3, 4}, {3, 4}};  // [T, H·D]: positions 0, 1, 2
  const Tensor<2> want = {{3, 4}, {-4, 3}, {-3, -4}};
  for (const Pairing pairing : pairings) {
    const double bound = rotated_bound(x);
    const auto rotated = [&] { return rope(x, 2, rope_table(3, quarter), 0, pairing); };
    REQUIRE(ending_apart(rotated) == "returned");
    CHECK(all_close(rotated(), want, bound));
    CHECK(all_close(by_rows(x, 2, rope_table(3, quarter), 0, pairing), want, bound));
  }
  // The scores with keys (3, 4): distance 1 twice, then distance 2.
  const ConstMatrix rotated = want;
  const auto score = [&](std::size_t m, std::size_t n) {
    return rotated.row(m)[0] * rotated.row(n)[0] + rotated.row(m)[1] * rotated.row(n)[1];
  };
  CHECK(score(1, 0) == 0);
  CHECK(score(2, 1) == 0);
  CHECK(score(2, 0) == -25);
}

TEST_CASE("by hand: neighbours rotate (1, 2) and (3, 4), halves rotate (1, 3) and (2, 4)") {
  const Frequencies frequencies = {std::numbers::pi / 2, std::numbers::pi};
  const RopeTable table = rope_table(2, frequencies);
  const Tensor<2> x = {{1, 2, 3, 4}};
  const Tensor<2> neighbours = {{-2, 1, -3, -4}}, halves = {{-3, -2, 1, -4}};
  const double bound = rotated_bound(x);
  CHECK(all_close(rope(x, 4, table, 1, Pairing::neighbours), neighbours, bound));
  CHECK(all_close(rope(x, 4, table, 1, Pairing::halves), halves, bound));
  CHECK(all_close(by_rows(x, 4, table, 1, Pairing::neighbours), neighbours, bound));
  CHECK(all_close(by_rows(x, 4, table, 1, Pairing::halves), halves, bound));

  // In the order 0 2 1 3, rotated as neighbours: what halves give, in that order.
  const Tensor<2> permuted = {{1, 3, 2, 4}}, want = {{-3, 1, -2, -4}};
  CHECK(all_close(rope(permuted, 4, table, 1, Pairing::neighbours), want, bound));
  CHECK(all_close(by_rows(permuted, 4, table, 1, Pairing::neighbours), want, bound));
}

TEST_CASE("formula and row kernel equal PyTorch in float64, in both pairings") {
  const Tensor<2> x = side_by_side(load_npy<3>(T2T_FIXTURES "/x.npy"));  // [5, 3·10]
  const RopeTable table = table_for(12, 10);
  const double bound = rotated_bound(x);
  for (const Pairing pairing : pairings) {
    const bool halves = pairing == Pairing::halves;
    const Tensor<2> want = side_by_side(
        load_npy<3>(halves ? T2T_FIXTURES "/halves.npy" : T2T_FIXTURES "/neighbours.npy"));
    CHECK(all_close(rope(x, 10, table, 7, pairing), want, bound));
    CHECK(all_close(by_rows(x, 10, table, 7, pairing), want, bound));
  }
}

TEST_CASE("the row kernel equals the formula at every shape") {
  for (const auto& [T, H, D] :
       {std::array{1u, 1u, 2u}, {3u, 5u, 6u}, {4u, 2u, 34u}, {2u, 3u, 128u}, {7u, 1u, 64u}}) {
    const Tensor<2> x = Random(D).normal<2>({T, H * D});
    CAPTURE(x.shape(1));
    for (const Pairing pairing : pairings)
      CHECK(all_close(by_rows(x, D, table_for(20, D), 9, pairing),
                      rope(x, D, table_for(20, D), 9, pairing), rotated_bound(x)));
  }
}

TEST_CASE("a row of a wider matrix is rotated in its own columns only") {
  const Tensor<2> before = Random(4).normal<2>({3, 16});  // q in columns 0..7, v in 8..15
  for (const Pairing pairing : pairings) {
    Tensor<2> both = before;
    rope_rows(Matrix(both).cols_from(0, 8), 4, table_for(9, 4), 5, pairing);
    for (std::size_t t = 0; t < 3; ++t)
      for (std::size_t c = 0; c < 16; ++c) {
        INFO(fmt::format("row {}, column {}: was {}, is {}", t, c, before(t, c), both(t, c)));
        CHECK((both(t, c) == before(t, c)) == (c >= 8));
      }
  }
}

TEST_CASE("position 0 is left exactly as it was, and lengths are kept at all positions") {
  const Tensor<2> x = Random(5).normal<2>({30, 2 * 10});
  for (const Pairing pairing : pairings) {
    const Tensor<2> y = by_rows(x, 10, table_for(30, 10), 0, pairing);
    for (std::size_t c = 0; c < 20; ++c) CHECK(y(0, c) == x(0, c));
    for (std::size_t t = 0; t < 30; ++t) {
      double was = 0, is = 0;  // of head 1
      for (std::size_t c = 10; c < 20; ++c) was += x(t, c) * double(x(t, c));
      for (std::size_t c = 10; c < 20; ++c) is += y(t, c) * double(y(t, c));
      CHECK(std::abs(std::sqrt(is / was) - 1) <= 4 * u);  // each number's four roundings
    }
  }
}

TEST_CASE("a score depends only on the distance of query and key") {
  const std::size_t D = 16;
  const Tensor<2> q = Random(6).normal<2>({1, D}), k = Random(7).normal<2>({1, D});
  const RopeTable table = table_for(1100, D);
  const auto score = [&](std::size_t m, std::size_t n, Pairing pairing) {
    return dot(by_rows(q, D, table, m, pairing), by_rows(k, D, table, n, pairing));
  };
  // Each of 16 products brings the roundings of its two factors.
  const double bound = 2 * 4 * u * D * largest(q) * largest(k);
  for (const Pairing pairing : pairings)
    for (const std::size_t distance : {0, 1, 5, 90}) {
      const double near = score(distance, 0, pairing);
      for (const std::size_t n : {1, 100, 1000})
        CHECK(std::abs(score(n + distance, n, pairing) - near) <= bound);
      if (distance > 0) CHECK(std::abs(near - score(0, 0, pairing)) > 0.01);
    }
}

TEST_CASE("a key rotated one position on scores highest one position back") {
  const std::size_t D = 16;
  const Tensor<2> q = Random(13).normal<2>({1, D});
  const RopeTable table = table_for(30, D);
  for (const Pairing pairing : pairings) {
    const Tensor<2> k = rope(q, D, table, 1, pairing), q20 = rope(q, D, table, 20, pairing);
    std::size_t best = 0;
    double highest = -1;
    for (std::size_t n = 0; n < 30; ++n) {
      const double score = dot(rope(k, D, table, n, pairing), q20);
      if (score > highest) highest = score, best = n;
    }
    CHECK(best == 19);
  }
}

TEST_CASE("a run from start equals that slice of the longer run, bit by bit") {
  const Tensor<2> x = Random(8).normal<2>({9, 2 * 6});
  const Tensor<2> tail = xt::view(x, xt::range(5, 9), xt::all());
  for (const Pairing pairing : pairings) {
    const Tensor<2> whole = by_rows(x, 6, table_for(20, 6), 2, pairing);
    const Tensor<2> part = by_rows(tail, 6, table_for(20, 6), 7, pairing);
    INFO(first_difference(std::span(part.data(), part.size()),
                          std::span(whole.data() + 5 * 12, part.size())));
    CHECK(std::equal(part.begin(), part.end(), whole.data() + 5 * 12));
  }
}

TEST_CASE("by hand: permuted to neighbours, a head of 4 rows has the order 0 2 1 3") {
  Tensor<2> w = empty(8, 1), want = {{0}, {2}, {1}, {3}, {4}, {6}, {5}, {7}};
  for (std::size_t r = 0; r < 8; ++r) w(r, 0) = float(r);
  CHECK(all_close(permute_halves_to_neighbours(w, 4), want, 0));
  CHECK(all_close(permute_neighbours_to_halves(want, 4), w, 0));
}

TEST_CASE("by hand: with six rows a head the two ways differ, and each undoes the other") {
  const Tensor<2> halves = {{0}, {1}, {2}, {3}, {4}, {5}, {10}, {11}, {12}, {13}, {14}, {15}};
  const Tensor<2> neighbours = {{0}, {3}, {1}, {4}, {2}, {5}, {10}, {13}, {11}, {14}, {12}, {15}};
  CHECK(all_close(permute_halves_to_neighbours(halves, 6), neighbours, 0));
  CHECK(all_close(permute_neighbours_to_halves(neighbours, 6), halves, 0));
}

TEST_CASE("by hand: of a larger matrix only the given rows and columns are permuted") {
  Tensor<2> w = empty(10, 3);  // rows 2 to 5 and columns 1 and 2 are given, one head of 4 rows
  for (std::size_t r = 0; r < 10; ++r)
    for (std::size_t c = 0; c < 3; ++c) w(r, c) = float(10 * r + c);
  const ConstMatrix given = ConstMatrix(w).rows_from(2, 4).cols_from(1, 2);
  const Tensor<2> want = {{21, 22}, {41, 42}, {31, 32}, {51, 52}};
  CHECK(all_close(permute_halves_to_neighbours(given, 4), want, 0));
  CHECK(all_close(permute_neighbours_to_halves(given, 4), want, 0));  // 0 2 1 3 undoes itself
}

TEST_CASE("with permuted weights the other pairing gives the same numbers, reordered") {
  const std::size_t T = 4, H = 3, D = 6;
  const Tensor<2> x = Random(9).normal<2>({T, 5}), w = Random(10).normal<2>({H * D, 5});
  const RopeTable table = table_for(50, D);
  Tensor<2> halves = matmul_bt(x, w);                                       // [T, H·D]
  Tensor<2> neighbours = matmul_bt(x, permute_halves_to_neighbours(w, D));  // [T, H·D]
  rope_rows(halves, D, table, 40, Pairing::halves);
  rope_rows(neighbours, D, table, 40, Pairing::neighbours);
  // The same sums of 5 in another place, where BLAS may add in another order; numbers up to 10.
  for (std::size_t t = 0; t < T; ++t)
    for (std::size_t c = 0; c < H * D; c += 2) {
      const std::size_t at = c / D * D + c % D / 2;
      CHECK(std::abs(neighbours(t, c) - halves(t, at)) <= 2 * 5 * 10 * u);
      CHECK(std::abs(neighbours(t, c + 1) - halves(t, at + D / 2)) <= 2 * 5 * 10 * u);
    }
}

TEST_CASE("frequencies and scalings equal the published formulas in float64") {
  // One rounding: the fixture's, to float32. Ours are double.
  const auto is = [](const Frequencies& got, const char* name) {
    return relatively_close(got, frequencies_in(name), 1);
  };
  CHECK(is(rope_frequencies(6, 100), "frequencies_6_100"));
  CHECK(is(rope_frequencies(128, 500000), "frequencies_128_500000"));
  CHECK(rope_frequencies(4, 1e7)[1] == doctest::Approx(1 / std::sqrt(1e7)).epsilon(1e-12));
  CHECK(is(ntk_scaling(64, 10000, 4), "ntk_64_4"));
  CHECK(is(llama3_scaling(rope_frequencies(128, 500000), {}), "llama3_128"));
  CHECK(is(llama3_scaling(rope_frequencies(26), {3, 2, 7, 1000}), "llama3_26"));
  CHECK(is(yarn_scaling(128, 10000, {}), "yarn_128"));
  CHECK(is(yarn_scaling(26, 500, {16, 5, 0.5, 100}), "yarn_26"));
  Frequencies quarter = rope_frequencies(6, 100);
  for (double& f : quarter) f /= 4;
  CHECK(relatively_close(linear_scaling(rope_frequencies(6, 100), 4), quarter, 0));
  for (std::size_t i = 0; i < 4; ++i)
    CHECK(std::abs(yarn_magnitude(factors[i]) - fixture("yarn_magnitudes")(i)) <= 2 * u);
}

TEST_CASE("a factor of 1 changes nothing; the others keep the fastest pair and slow the slowest") {
  const Frequencies plain = rope_frequencies(64);
  CHECK(relatively_close(linear_scaling(plain, 1), plain, 0));
  CHECK(relatively_close(ntk_scaling(64, 10000, 1), plain, few_doubles));
  CHECK(relatively_close(llama3_scaling(plain, {1, 1, 4, 2048}), plain, few_doubles));
  CHECK(relatively_close(yarn_scaling(64, 10000, {1, 32, 1, 2048}), plain, few_doubles));
  for (const Frequencies& scaled :
       {ntk_scaling(64, 10000, 4), llama3_scaling(plain, {4, 1, 4, 2048}),
        yarn_scaling(64, 10000, {4, 32, 1, 2048})}) {
    CHECK(scaled[0] == 1);
    CHECK(std::abs(scaled[31] / plain[31] * 4 - 1) <= few_doubles * u);
  }
}

TEST_CASE("YaRN as OLMo 3 has it: its file's attention factor, and which pairs it slows") {
  // rope_theta 500,000, factor 8, original length 8,192, attention_factor 1.2079441541679836.
  CHECK(std::abs(yarn_magnitude(8) - 1.2079441541679836) <= 2 * u);
  const Frequencies plain = rope_frequencies(128, 500000);
  const Frequencies scaled = yarn_scaling(128, 500000, {8, 32, 1, 8192});
  // 32 turns are made by pair 64·ln(8192 / 64π) / ln θ = 18.08, and 1 turn by 34.98.
  for (std::size_t i = 0; i < 64; ++i) {
    CAPTURE(i);
    const double slowed = std::clamp((double(i) - 18) / (35 - 18), 0.0, 1.0);
    const double want = plain[i] * (1 - slowed) + plain[i] / 8 * slowed;
    CHECK(std::abs(scaled[i] / want - 1) <= few_doubles * u);
  }
}

TEST_CASE("by hand: Llama 3's scaling of pairs that make 1, 2, 3, 5 and 6 turns in training") {
  // Those below 2 turns get f / 4, those above 5 keep f, and 3 turns are a third of the way there.
  const double turn = 2 * std::numbers::pi / 100;
  const Frequencies plain = {turn, 2 * turn, 3 * turn, 5 * turn, 6 * turn};
  const Frequencies want = {turn / 4, turn / 2, 1.5 * turn, 5 * turn, 6 * turn};
  CHECK(relatively_close(llama3_scaling(plain, {4, 2, 5, 100}), want, few_doubles));
}

TEST_CASE("by hand: YaRN's mixture runs from the pair of `fast` turns to that of `slow`") {
  // With θ = 16 and D = 8 pair i makes 2^-i of the turns of pair 0, so turns / x have number log2
  // x.
  const double turns = 100 / (2 * std::numbers::pi);
  // Of 1.7 it is 0.77 and of 4.6 it is 2.2: both are rounded outward, to 0 and 3.
  const Frequencies mixed = {1, 0.75 * 0.5, 0.5 * 0.25, 0.25 * 0.125};
  CHECK(relatively_close(yarn_scaling(8, 16, {4, turns / 1.7, turns / 4.6, 100}), mixed,
                         few_doubles));
  // More turns than pair 0 makes: the mixture begins at pair 0 all the same.
  CHECK(
      relatively_close(yarn_scaling(8, 16, {4, turns * 10, turns / 4.6, 100}), mixed, few_doubles));
  // `slow` is what pair 0 makes: it keeps its frequency, and the others get f / 4.
  const Frequencies only_first = {1, 0.5 / 4, 0.25 / 4, 0.125 / 4};
  Frequencies got;
  CHECK_NOTHROW(got = yarn_scaling(8, 16, {4, turns * 10, turns, 100}));
  CHECK(relatively_close(got, only_first, few_doubles));
}

TEST_CASE("by hand: YaRN's mixture ends at number D - 1 at most, as in the authors' code") {
  // Pair i has frequency 10^(-i/4). The number of `fast` is 2.16, rounded to 2, and that of `slow`
  // would be 17: pair 3 is a fifth of the way from 2 to 7.
  const Frequencies plain = rope_frequencies(8, 10);
  Frequencies fifth = plain;
  fifth[3] *= 0.8 + 0.2 / 4;
  CHECK(relatively_close(yarn_scaling(8, 10, {4, 3000, 1, 65536}), fifth, few_doubles));
  // The number of `fast` is 7.49: both ends are 7, and all pairs keep their frequencies.
  CHECK(relatively_close(yarn_scaling(8, 10, {4, 32, 1, 15000}), plain, few_doubles));
  // It is 10.05, above D - 1: the end lies before the beginning, and all pairs get f / 4.
  Frequencies quarter = plain;
  for (double& f : quarter) f /= 4;
  CHECK(relatively_close(yarn_scaling(8, 10, {4, 32, 1, 65536}), quarter, few_doubles));
}

TEST_CASE("by hand: slowed linearly by 4, position 4m has the angles of position m") {
  const Frequencies plain = rope_frequencies(16);
  const RopeTable trained = table_for(10, 16), slowed = rope_table(40, linear_scaling(plain, 4));
  for (std::size_t m = 0; m < 10; ++m)
    for (std::size_t i = 0; i < 8; ++i) {  // dividing by 4 rounds nothing
      CHECK(slowed.cos(4 * m, i) == trained.cos(m, i));
      CHECK(slowed.sin(4 * m, i) == trained.sin(m, i));
    }
}

TEST_CASE("far out: a pair is rotated by its true angle, in both pairings") {
  // The angle m·θ^(−2i/D) in long double. cos and sin are rounded once, rotating rounds three times
  // more; a frequency rounded to float32 would move the last position's angles by thousandths.
  const std::size_t D = 16, positions[] = {0, 1012, 8193, 131071};
  const RopeTable table = rope_table(131072, rope_frequencies(D));
  const Tensor<2> x = Random(14).uniform<2>({1, D}, -1, 1);
  for (const std::size_t m : positions)
    for (const Pairing pairing : pairings) {
      CAPTURE(m);
      Tensor<2> want = empty(1, D);
      for (std::size_t i = 0; i < D / 2; ++i) {
        const std::size_t a = pairing == Pairing::halves ? i : 2 * i;
        const std::size_t b = pairing == Pairing::halves ? i + D / 2 : 2 * i + 1;
        const long double f = std::pow(10000.0L, -2.0L * (long double)(i) / (long double)(D));
        const long double cos = std::cos(m * f), sin = std::sin(m * f);
        want(0, a) = float(x(0, a) * cos - x(0, b) * sin);
        want(0, b) = float(x(0, a) * sin + x(0, b) * cos);
      }
      CHECK(all_close(rope(x, D, table, m, pairing), want, rotated_bound(x)));
      CHECK(all_close(by_rows(x, D, table, m, pairing), want, rotated_bound(x)));
    }
}

static void each_pair_turns_by_its_own_angle(std::size_t T, std::size_t H, std::size_t D,
                                             std::size_t start) {
  const RopeTable table = rope_table(start + T, rope_frequencies(D));
  const Tensor<2> x = Random(15).uniform<2>({T, H * D}, -1, 1);
  for (const Pairing pairing : pairings) {
    Tensor<2> want = empty(T, H * D);
    for (std::size_t t = 0; t < T; ++t)
      for (std::size_t i = 0; i < D / 2; ++i) {
        const std::size_t a = pairing == Pairing::halves ? i : 2 * i;
        const std::size_t b = pairing == Pairing::halves ? i + D / 2 : 2 * i + 1;
        const double angle = double(start + t) * std::pow(10000.0, -2.0 * double(i) / double(D));
        const double cos = std::cos(angle), sin = std::sin(angle);
        for (std::size_t h = 0; h < H; ++h) {
          want(t, h * D + a) = float(x(t, h * D + a) * cos - x(t, h * D + b) * sin);
          want(t, h * D + b) = float(x(t, h * D + a) * sin + x(t, h * D + b) * cos);
        }
      }
    CHECK(all_close(rope(x, D, table, start, pairing), want, rotated_bound(x)));
    CHECK(all_close(by_rows(x, D, table, start, pairing), want, rotated_bound(x)));
  }
}

TEST_CASE("20 heads of 256 numbers, which the threads share: every pair rotates by its own angle") {
  each_pair_turns_by_its_own_angle(30, 20, 256, 1000);
}

TEST_CASE("130 heads, and 700 tokens from position 20,000 on, rotate as few do") {
  each_pair_turns_by_its_own_angle(2, 130, 4, 3);
  each_pair_turns_by_its_own_angle(700, 1, 4, 20'000);
}

TEST_CASE("the table is right far out, and a magnitude is on cos and sin alike") {
  const Frequencies frequencies = frequencies_in("far_frequencies");
  const RopeTable table = rope_table(100000, frequencies), twice = rope_table(3, frequencies, 2);
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    CHECK(std::abs(table.cos(99999, i) - fixture("far_cos")(i)) <= u);
    CHECK(std::abs(table.sin(99999, i) - fixture("far_sin")(i)) <= u);
    CHECK(twice.cos(2, i) == 2 * table.cos(2, i));
    CHECK(twice.sin(2, i) == 2 * table.sin(2, i));
  }
}

TEST_CASE("sinusoids equal the published formula and are added from start on") {
  const Tensor<2> table = sinusoidal_positions(7, 10);
  CHECK(all_close(table, load_npy<2>(T2T_FIXTURES "/sinusoids.npy"), 2 * u));
  const Tensor<2> x = Random(11).normal<2>({3, 10});
  Tensor<2> added = x;
  add_positions(added, table, 4);
  CHECK(all_close(added, with_positions(x, table, 4), 0));
  CHECK(added(2, 9) == x(2, 9) + table(6, 9));
  Random random(12);
  const Tensor<2> learned = learned_positions(100, 100, random);
  double squares = 0;
  for (const float value : learned) squares += double(value) * double(value);
  CHECK(std::abs(std::sqrt(squares / 10000) - 0.01) < 0.0003);  // four times 0.01 / sqrt(2 · 10000)
}

TEST_CASE("ALiBi: slopes as published, biases by hand") {
  for (const std::size_t H : {1, 12, 20})
    CHECK(relatively_close(doubles(alibi_slopes(H)), frequencies_in("slopes_" + std::to_string(H)),
                           2));
  CHECK(alibi_slopes(8)(0) == 0.5f);
  CHECK(alibi_slopes(8)(7) == 0x1p-8f);

  const Tensor<3> biases = alibi_biases(2, 2, 3);  // slopes 1/16 and 1/256; queries at 1 and 2
  CHECK(biases(0, 0, 0) == -1 / 16.0f);
  CHECK(biases(0, 0, 1) == 0);
  CHECK(biases(0, 0, 2) == -std::numeric_limits<float>::infinity());
  CHECK(biases(1, 1, 0) == -2 / 256.0f);
  CHECK(biases(1, 1, 2) == 0);
}

TEST_CASE("by hand: of two buckets the first is for the token itself") {
  CHECK(t5_bucket(0, 2, 8) == 0);
  CHECK(t5_bucket(1, 2, 8) == 1);
}

TEST_CASE("by hand: 8 buckets up to distance 32 begin at distances 0 1 2 3 4 7 12 20") {
  const std::size_t begins[] = {0, 1, 2, 3, 4, 7, 12, 20, 1000};
  for (std::size_t bucket = 0; bucket < 8; ++bucket) {
    CHECK(t5_bucket(begins[bucket], 8, 32) == bucket);
    CHECK(t5_bucket(begins[bucket + 1] - 1, 8, 32) == bucket);
  }
  Tensor<2> table = empty(8, 2);  // [buckets, H]: 10·h + the bucket
  for (std::size_t b = 0; b < 8; ++b) table(b, 0) = float(b), table(b, 1) = 10 + float(b);
  const Tensor<3> biases = t5_biases(table, 2, 6, 32);  // queries at 4 and 5
  const float inf = std::numeric_limits<float>::infinity();
  const Tensor<2> head_1 = {{14, 13, 12, 11, 10, -inf}, {14, 14, 13, 12, 11, 10}};
  for (std::size_t t = 0; t < 2; ++t)
    for (std::size_t s = 0; s < 6; ++s) {
      CHECK(biases(1, t, s) == head_1(t, s));
      CHECK(biases(0, t, s) == head_1(t, s) - 10);
    }
}

TEST_CASE("T5's buckets equal those of its published code") {
  using Case = std::array<std::size_t, 2>;
  for (const auto& [buckets, most] : {Case{32, 128}, Case{8, 32}, Case{7, 20}, Case{64, 256}}) {
    const Tensor<1> want = fixture(fmt::format("t5_{}_{}", buckets, most));
    for (std::size_t distance = 0; distance < want.size(); ++distance)
      CHECK(float(t5_bucket(distance, buckets, most)) == want(distance));
  }
}

TEST_CASE("by hand: Shaw's vectors, two heads of two numbers, distances from 1 on share a vector") {
  const Tensor<2> vectors = {{2, 0}, {0, 4}};           // of distance 0, and of 1 and more
  const Tensor<2> q = {{1, 2, 3, 4}, {5, 6, 7, 8}};     // at positions 1 and 2
  const Tensor<3> biases = shaw_biases(q, vectors, 3);  // [H, T, S], over √2
  const double root = std::sqrt(2.0);
  const double want[2][2][3] = {{{8, 2, 0}, {24, 24, 10}}, {{16, 6, 0}, {32, 32, 14}}};
  for (std::size_t h = 0; h < 2; ++h)
    for (std::size_t t = 0; t < 2; ++t)
      for (std::size_t s = 0; s < 2 + t; ++s)  // 1/√2 and the product with it are rounded
        CHECK(std::abs(biases(h, t, s) - want[h][t][s] / root) <= 4 * u * 32);
  CHECK(biases(1, 0, 2) == -std::numeric_limits<float>::infinity());
}

TEST_CASE("Shaw's biases equal the paper's formula in float64") {
  const Tensor<2> q = load_npy<2>(T2T_FIXTURES "/shaw_q.npy");              // [3, 2·5]
  const Tensor<2> vectors = load_npy<2>(T2T_FIXTURES "/shaw_vectors.npy");  // [4 + 1, 5]
  const Tensor<3> want = load_npy<3>(T2T_FIXTURES "/shaw_biases.npy");      // [2, 3, 9]
  const Tensor<3> got = shaw_biases(q, vectors, 9);
  // A sum of 5 products over √5, each at most largest · largest and rounded up to 8 times.
  const double bound = 8 * u * 5 * largest(q) * largest(vectors) / std::sqrt(5.0);
  for (std::size_t h = 0; h < 2; ++h)
    for (std::size_t t = 0; t < 3; ++t)
      for (std::size_t s = 0; s < 9; ++s)
        if (s <= 6 + t)
          CHECK(std::abs(got(h, t, s) - want(h, t, s)) <= bound);
        else
          CHECK(got(h, t, s) == want(h, t, s));
}

TEST_CASE("biases: a query that comes alone after a cache gets the row that it has in the whole") {
  const std::size_t S = 40, H = 3, D = 4;
  const Tensor<2> numbers = Random(15).normal<2>({32, H}), vectors = Random(16).normal<2>({7, D});
  const Tensor<2> q = Random(17).normal<2>({S, H * D});
  const Tensor<3> all[] = {alibi_biases(H, S, S), t5_biases(numbers, S, S),
                           shaw_biases(q, vectors, S)};
  const Tensor<3> one[] = {alibi_biases(H, 1, S), t5_biases(numbers, 1, S),
                           shaw_biases(ConstMatrix(q).rows_from(S - 1, 1), vectors, S)};
  // Shaw's are sums of D products over √D, which may be added in another order.
  const double bound = 2 * 8 * u * D * largest(q) * largest(vectors) / std::sqrt(double(D));
  for (std::size_t scheme = 0; scheme < 3; ++scheme)
    for (std::size_t h = 0; h < H; ++h)
      for (std::size_t s = 0; s < S; ++s)
        CHECK(std::abs(one[scheme](h, 0, s) - all[scheme](h, S - 1, s)) <= bound);
}

TEST_CASE("the row kernel allocates nothing") {
  Tensor<2> x = Random(1).normal<2>({5, 3 * 8});
  const RopeTable table = table_for(9, 8);
  for (const Pairing pairing : pairings)
    CHECK(allocates_nothing(3, [&] { rope_rows(x, 8, table, 4, pairing); }));
}

TEST_CASE("the table may end in the middle of many rows: none is rotated") {
  const Tensor<2> before = Random(1).normal<2>({600, 64});
  Tensor<2> x = before;
  REFUSES(rope_rows(x, 64, table_for(599, 64), 0, Pairing::halves),
          "position 599: the table ends at 598");
  CHECK(all_close(x, before, 0));
}

TEST_CASE("bad input is refused, with its message") {
  using Bad = std::invalid_argument;
  const RopeTable table = table_for(10, 4);
  Tensor<2> x = Random(1).normal<2>({3, 8});
  const auto run = [&](std::size_t D, std::size_t start) {
    rope_rows(x, D, table, start, Pairing::halves);
  };
  REFUSES(rope_frequencies(7), "D: wanted an even number above 0, got 7");
  REFUSES(rope_frequencies(8, 0), "theta: wanted a finite number above 0, got 0");
  // One fault in each call: a table that fits D, but x does not.
  const RopeTable of_6 = table_for(10, 6);
  REFUSES(rope_rows(x, 6, of_6, 0, Pairing::halves),
          "columns of x: wanted a multiple of D = 6, got 8");
  const RopeTable of_1 = {empty(10, 0), empty(10, 0)};
  REFUSES(rope_rows(x, 1, of_1, 0, Pairing::halves), "D: wanted an even number above 0, got 1");
  REFUSES(run(8, 0), "table.cos: wanted shape [10, 4], got [10, 2]");
  // The sines alone have another shape. That they would be enough for x makes no difference.
  const RopeTable few_sines = {table.cos, table_for(9, 4).sin};
  const RopeTable wide_sines = {table.cos, of_6.sin};
  REFUSES(rope(x, 4, few_sines, 0, Pairing::halves), "table.sin: wanted shape [10, 2], got [9, 2]");
  REFUSES(rope_rows(x, 4, few_sines, 0, Pairing::halves),
          "table.sin: wanted shape [10, 2], got [9, 2]");
  REFUSES(rope_rows(x, 4, wide_sines, 0, Pairing::halves),
          "table.sin: wanted shape [10, 2], got [10, 3]");
  REFUSES(run(4, 8), "position 10: the table ends at 9");
  CHECK_THROWS_AS(run(4, std::numeric_limits<std::size_t>::max()), Bad);
  CHECK_NOTHROW(run(4, 7));
  REFUSES(permute_halves_to_neighbours(x, 4), "rows of w: wanted a multiple of D = 4, got 3");
  REFUSES(permute_neighbours_to_halves(x, 0), "D: wanted an even number above 0, got 0");
  REFUSES(rope_table(2, {1}, 0), "magnitude: wanted a finite number above 0, got 0");
  REFUSES(rope_table(2, {1}, std::numeric_limits<float>::infinity()),
          "magnitude: wanted a finite number above 0, got inf");
  REFUSES(ntk_scaling(2, 10000, 4), "D: wanted an even number above 2, got 2");
  REFUSES(ntk_scaling(7, 10000, 4), "D: wanted an even number above 2, got 7");
  REFUSES(ntk_scaling(8, 0, 4), "theta: wanted a finite number above 0, got 0");
  const Frequencies four = rope_frequencies(4);
  REFUSES(llama3_scaling(four, {8, 4, 4, 99}), "high: wanted more than low, got 4");
  REFUSES(llama3_scaling(four, {8, 0, 4, 99}), "low: wanted above 0, got 0");
  REFUSES(yarn_scaling(4, 1, {}), "theta: wanted more than 1, got 1");
  REFUSES(yarn_scaling(7, 100, {}), "D: wanted an even number above 0, got 7");
  REFUSES(yarn_scaling(4, 100, {4, 2, 2, 2048}), "fast: wanted more than slow, got 2");
  REFUSES(yarn_scaling(4, 100, {4, 32, 0, 2048}), "slow: wanted above 0, got 0");
  for (const double factor : {0.5, double(infinity), double(NAN)}) {
    CAPTURE(factor);
    const std::string says =
        fmt::format("factor: wanted a finite number, at least 1, got {}", factor);
    REFUSES(linear_scaling(four, factor), says);
    REFUSES(ntk_scaling(8, 10000, factor), says);
    REFUSES(llama3_scaling(four, {factor, 1, 4, 8192}), says);
    REFUSES(yarn_scaling(4, 100, {factor, 32, 1, 2048}), says);
    REFUSES(yarn_magnitude(factor), says);
  }
  REFUSES(yarn_scaling(4, 100, {4, 32, 1, 6}), "trained: wanted at least 2π · slow = 6.283, got 6");
  REFUSES(sinusoidal_positions(4, 5), "C: wanted an even number above 0, got 5");
  REFUSES(add_positions(x, sinusoidal_positions(4, 8), 2), "position 4: the table ends at 3");
  REFUSES(add_positions(x, sinusoidal_positions(4, 6), 0),
          "table: wanted shape [4, 8], got [4, 6]");
  REFUSES(alibi_biases(2, 4, 3), "T: wanted at most S = 3, got 4");
  REFUSES(alibi_slopes(0), "H: wanted at least 1, got 0");
  REFUSES(t5_bucket(0, 1, 8), "buckets: wanted at least 2, got 1");
  REFUSES(t5_bucket(0, 8, 4), "max_distance: wanted more than 4, got 4");
  const Tensor<2> numbers = xt::zeros<float>({8, 2}), vectors = xt::zeros<float>({3, 4});
  REFUSES(t5_biases(numbers, 4, 3), "T: wanted at most S = 3, got 4");
  REFUSES(shaw_biases(x, vectors, 2), "T: wanted at most S = 2, got 3");
  REFUSES(shaw_biases(numbers, vectors, 9), "columns of q: wanted a multiple of D = 4, got 2");
}
