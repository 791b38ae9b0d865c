// What must be true of keys and values in 8 and 4 bits: how a row is rounded, attention to rounded
// rows, the attention of a block, and a model's state.
#include <doctest/doctest.h>
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "03_rope/fast/rope_rows.hpp"
#include "08_block/fast/cached_attention.hpp"
#include "09_language_model/fast/forward.hpp"
#include "10_pretrained/model/tiny_model.hpp"
#include "12_quantization/cache/quantized_attention.hpp"
#include "12_quantization/cache/quantized_cache.hpp"
#include "12_quantization/cache/quantized_state.hpp"
#include "linalg.hpp"
#include "random.hpp"
#include "support/all_close.hpp"
#include "support/allocations.hpp"
#include "support/apart.hpp"
#include "support/attention_in_double.hpp"
#include "support/refuses.hpp"

namespace t2t::cache_test {

using std::size_t;

static constexpr double u = 0x1p-24;  // one rounding of a number up to 1

static Tensor<2> draw(size_t rows, size_t cols, size_t seed, float deviation = 1) {
  return Random(seed).normal<2>({rows, cols}, deviation);
}

/// All heads' first rows as floats, side by side: [rows, G·D].
static Tensor<2> floats_of(const QuantizedHeads& heads, size_t rows) {
  Tensor<2> side_by_side = empty(rows, heads.G * heads.D);
  Tensor<2> one = empty(rows, whole_blocks(heads.D));
  for (size_t g = 0; g < heads.G; ++g) {
    load_rows(heads, g, 0, Matrix(one).cols_from(0, heads.D));
    for (size_t s = 0; s < rows; ++s)
      std::copy_n(row(one, s).begin(), heads.D, &side_by_side(s, g * heads.D));
  }
  return side_by_side;
}
/// x rounded and back.
static Tensor<2> there_and_back(const Tensor<2>& x, size_t G, size_t bits) {
  QuantizedHeads heads = make_quantized_heads(bits, G, x.shape(0), x.shape(1) / G);
  store_rows(x, 0, heads);
  return floats_of(heads, x.shape(0));
}
static Tensor<2> row_of(std::vector<float> numbers, size_t D) {
  numbers.resize(D);
  Tensor<2> x = empty(1, D);
  std::ranges::copy(numbers, x.begin());
  return x;
}

TEST_CASE("by hand: with 8 bits a row has 127 steps to either side of zero") {
  // The scale is 254/127 = 2. 3 and −5 lie between two steps and go to the even one.
  const Tensor<2> x = row_of({254, 3, -5, 100.5f, -254, 0.9f}, 32);
  CHECK(all_close(there_and_back(x, 1, 8), row_of({254, 4, -4, 100, -254, 0}, 32), 0));
  // 255/127 is rounded up to 2.015625, so that 255 has 127 steps and not 128.
  CHECK(there_and_back(row_of({255}, 32), 1, 8)(0, 0) == 127 * 2.015625f);
}

TEST_CASE("by hand: with 4 bits a row has 16 values from its lowest number to its highest") {
  // From −1 to 29 in steps of 2: 8.8 is 4.9 steps up and becomes 9, 28 is 14.5 and becomes 27.
  std::vector<float> numbers(32, -1), want(32, -1);
  numbers[1] = want[1] = 29, numbers[2] = 8.8f, want[2] = 9, numbers[31] = 28, want[31] = 27;
  CHECK(all_close(there_and_back(row_of(numbers, 32), 1, 4), row_of(want, 32), 0));
}

TEST_CASE(
    "by hand: each 32 numbers of a head's row, and the rest of it, have a scale of their own") {
  // Beside 1000 the numbers 1 and 2 would be less than a step of 8 bits.
  Tensor<2> x = xt::zeros<float>({1, 2 * 40});
  x(0, 0) = 127, x(0, 1) = 2, x(0, 32) = 127000, x(0, 40) = 1270, x(0, 41) = 20, x(0, 79) = 254;
  CHECK(all_close(there_and_back(x, 2, 8), x, 0));
}

TEST_CASE("a number is off by half a step at most, whatever D is") {
  for (const size_t bits : {8, 4})
    for (const size_t D : {1, 7, 10, 31, 32, 33, 64, 80})
      for (const float size : {1e-20f, 1e-3f, 1.f, 1e20f})
        for (const float middle : {0.f, 3.f, -3.f}) {
          CAPTURE(bits);
          CAPTURE(D);
          CAPTURE(size);
          CAPTURE(middle);
          const size_t G = 2, T = 5;
          const Tensor<2> x = (draw(T, G * D, D) + middle) * size,
                          back = there_and_back(x, G, bits);
          for (size_t t = 0; t < T; ++t)
            for (size_t g = 0; g < G; ++g)
              for (size_t d = 0; d < D; d += 32) {
                const size_t n = std::min<size_t>(32, D - d);
                const auto numbers = row(x, t).subspan(g * D + d, n);
                const auto [low, high] = std::ranges::minmax(numbers);
                const double largest = std::max(std::abs(low), std::abs(high));
                // 16 bits of a float are 8 of its fraction: the scale is up to 2^-7 too large, and
                // the minimum up to 2^-7 of itself too low.
                const double range = double(high) - low + (low < 0 ? -low : low) * 0x1p-7;
                const double step = (bits == 8 ? largest / 127 : range / 15) * (1 + 0x1p-7);
                for (size_t i = 0; i < n; ++i)
                  CHECK(std::abs(double(numbers[i]) - back(t, g * D + d + i)) <=
                        step / 2 + 4 * u * largest);
              }
        }
}

TEST_CASE("rows of zeros, of equal numbers and of tiny ones are rounded without a division by 0") {
  for (const size_t bits : {8, 4})
    for (const float value : {0.f, -0.75f, 2.f, 1e-35f, -1e-42f}) {
      CAPTURE(bits);
      CAPTURE(value);
      Tensor<2> x = empty(2, 40);
      x.fill(value);
      // With 4 bits equal numbers are the minimum, which these values are exactly.
      const double half_step = bits == 8 ? std::abs(value) / 127 * (1 + 0x1p-7) / 2 : 0;
      CHECK(all_close(there_and_back(x, 1, bits), x, half_step + 2e-30));
    }
}

TEST_CASE("rows are written where they belong, and no other row changes") {
  for (const size_t bits : {8, 4}) {
    const Tensor<2> first = draw(6, 3 * 40, 1), second = draw(2, 3 * 40, 2);
    QuantizedHeads heads = make_quantized_heads(bits, 3, 6, 40);
    store_rows(first, 0, heads);
    store_rows(second, 3, heads);
    Tensor<2> want = first;
    for (size_t t = 0; t < 2; ++t) std::ranges::copy(row(second, t), row(want, 3 + t).begin());
    CHECK(all_close(floats_of(heads, 6), there_and_back(want, 3, bits), 0));
    CHECK(bytes(heads) == 6 * 3 * 2 * (bits == 8 ? 34 : 20));
  }
}

/// A layer's attention, with the block that a call needs beside q, k, v and their runs.
struct Layer {
  BlockSettings settings;
  BlockWeights weights;
  QuantizedAttention attention;
  Layer(const BlockSettings& s, size_t S, size_t max_run_rows, size_t bits, size_t sequences = 1,
        AttentionKernel kernel = {})
      : settings(s), attention({&settings, 1}, S, max_run_rows, sequences, bits, kernel) {
    Random random(1);
    weights = draw_block(settings, random);
  }
  Tensor<2> operator()(Runs runs, ConstMatrix q, ConstMatrix k, ConstMatrix v) {
    Tensor<2> q_here = copy_of(q), k_here = copy_of(k), v_here = copy_of(v);
    Tensor<2> heads = empty(q.rows, q.cols);
    attention({Block(settings, weights), runs, q_here, k_here, v_here}, heads, {});
    return heads;
  }
  /// All T rows of one sequence in calls of at most `chunk`.
  Tensor<2> in_chunks(const Tensor<2>& q, const Tensor<2>& k, const Tensor<2>& v, size_t chunk) {
    Tensor<2> all = empty(q.shape(0), q.shape(1));
    for (size_t t = 0; t < q.shape(0); t += chunk) {
      const size_t count = std::min(chunk, q.shape(0) - t);
      const auto part = [&](const Tensor<2>& x) { return ConstMatrix(x).rows_from(t, count); };
      const Tensor<2> heads = (*this)(Run{0, t, count}, part(q), part(k), part(v));
      for (size_t i = 0; i < count; ++i) std::ranges::copy(row(heads, i), row(all, t + i).begin());
    }
    return all;
  }
};

static BlockSettings settings_with(size_t H, size_t G, size_t D, size_t window = 0) {
  BlockSettings settings{.C = 8, .H = H, .G = G, .D = D, .F = 8};
  settings.window = window;
  return settings;
}

struct Problem {
  size_t H, G, D, T;
  Tensor<2> q = draw(T, H*D, 1), k = draw(T, G*D, 2), v = draw(T, G*D, 3);

  /// Float64's attention to the rounded rows, after RoPE.
  Tensor<2> want(size_t bits, size_t window, float factor = 0, float cap = 0) const {
    const RopeTable table = block_rope_table(settings_with(H, G, D), T);
    Tensor<2> turned_q = q, turned_k = k;
    rope_rows(turned_q, D, table, 0, Pairing::neighbours);
    rope_rows(turned_k, D, table, 0, Pairing::neighbours);
    return attention_in_double(turned_q, there_and_back(turned_k, G, bits),
                               there_and_back(v, G, bits), H, G,
                               {Mask::sliding(window), factor, cap});
  }
  // A score of up to 8 is a sum of D products of N(0, 1), scaled; exp makes its error one of the
  // weights. The sums over T values of up to 5 keep about √T roundings. RoPE of q was computed
  // alike.
  double bound() const { return 2 * u * (std::sqrt(double(D)) + 16 + std::sqrt(double(T))) * 5; }
};

TEST_CASE(
    "attention is float64's of the rounded rows, in one call, in several, and token by token") {
  for (const size_t bits : {8, 4})
    for (const Problem& p : {Problem{4, 2, 16, 37}, Problem{9, 3, 64, 40}, Problem{3, 1, 10, 9},
                             Problem{3, 1, 34, 140}})
      for (const size_t window : {size_t(0), size_t(5), p.T - 1}) {
        CAPTURE(bits);
        CAPTURE(p.D);
        CAPTURE(window);
        const Tensor<2> want = p.want(bits, window);
        for (const size_t chunk : {p.T, size_t(7), size_t(1)}) {
          CAPTURE(chunk);
          Layer layer(settings_with(p.H, p.G, p.D, window), p.T, chunk, bits);
          CHECK(all_close(layer.in_chunks(p.q, p.k, p.v, chunk), want, p.bound()));
        }
      }
}

TEST_CASE("other rules for scores: a factor and a cap, for one token and for several") {
  const Problem p{4, 2, 16, 37};
  for (const size_t bits : {8, 4})
    for (const size_t chunk : {p.T, size_t(1)}) {
      BlockSettings settings = settings_with(p.H, p.G, p.D, 9);
      settings.score_scale = 0.5f, settings.score_cap = 3;
      Layer layer(settings, p.T, chunk, bits);
      CHECK(all_close(layer.in_chunks(p.q, p.k, p.v, chunk), p.want(bits, 9, 0.5f, 3),
                      2 * p.bound()));
    }
}

TEST_CASE("what rounding does to attention is bounded by the steps of keys and values") {
  // Half a step of a key moves a score by up to Σ|q| / √D of it, and two scores apart by twice as
  // much, so that weights change by a factor of up to e^(2·moved).
  const Problem p{4, 2, 64, 60};
  BlockSettings settings = settings_with(p.H, p.G, p.D);
  settings.uses_rope = false;
  const Tensor<2> exact = attention_in_double(p.q, p.k, p.v, p.H, p.G, Mask::causal);
  for (const size_t bits : {8, 4}) {
    CAPTURE(bits);
    Layer layer(settings, p.T, p.T, bits);
    const Tensor<2> got = layer.in_chunks(p.q, p.k, p.v, p.T);
    const double largest = 5, steps = bits == 8 ? 127 : 7.5;
    const double half_step = largest / steps * 1.02 / 2;
    double apart = 0, all = 0;
    for (size_t t = 0; t < p.T; ++t)
      for (size_t h = 0; h < p.H; ++h) {
        double sum = 0;
        for (size_t d = 0; d < p.D; ++d) sum += std::abs(double(p.q(t, h * p.D + d)));
        const double moved = half_step * sum / std::sqrt(double(p.D));
        for (size_t d = h * p.D; d < (h + 1) * p.D; ++d) {
          const double error = std::abs(double(got(t, d)) - exact(t, d));
          CHECK(error <= half_step + (std::exp(2 * moved) - 1) * largest);
          apart += error * error, all += double(exact(t, d)) * exact(t, d);
        }
      }
    // The bound is for roundings that all go the worst way. They go both ways, and the errors of
    // values and weights together are a few times the error of a number.
    CHECK(std::sqrt(apart / all) < (bits == 8 ? 0.02 : 0.3));
    CHECK(apart > 0);
  }
}

TEST_CASE("several texts in one call: each as if it were alone, at its own position") {
  const Problem p{4, 2, 16, 30};
  const BlockSettings settings = settings_with(p.H, p.G, p.D);
  const auto part = [](const Tensor<2>& x, size_t t, size_t count) {
    return copy_of(ConstMatrix(x).rows_from(t, count));
  };
  const auto rows = [&](Layer& layer, Runs runs, size_t t, size_t count) {
    return layer(runs, part(p.q, t, count), part(p.k, t, count), part(p.v, t, count));
  };
  Layer layer(settings, 30, 20, 8, 2);
  rows(layer, Run{1, 0, 5}, 0, 5);
  const std::vector<Run> runs = {{1, 5, 1}, {0, 0, 9}};
  const Tensor<2> both = rows(layer, runs, 5, 10);

  Layer first(settings, 30, 20, 8), second(settings, 30, 20, 8);
  const Tensor<2> of_0 = rows(first, Run{0, 0, 9}, 6, 9);
  rows(second, Run{0, 0, 5}, 0, 5);
  const Tensor<2> of_1 = rows(second, Run{0, 5, 1}, 5, 1);
  CHECK(all_close(part(both, 1, 9), of_0, 0));
  CHECK(all_close(part(both, 0, 1), of_1, 0));
}

TEST_CASE("a text goes on from an earlier position as if what came after it had never come") {
  const Problem p{4, 2, 16, 20};
  const auto part = [](const Tensor<2>& x, size_t t, size_t count) {
    return copy_of(ConstMatrix(x).rows_from(t, count));
  };
  for (const size_t bits : {8, 4}) {
    Layer cut(settings_with(4, 2, 16), 20, 20, bits), whole(settings_with(4, 2, 16), 20, 20, bits);
    cut(Run{0, 0, 12}, part(p.q, 0, 12), part(p.k, 0, 12), part(p.v, 0, 12));
    whole(Run{0, 0, 5}, part(p.q, 0, 5), part(p.k, 0, 5), part(p.v, 0, 5));
    const Run next{0, 5, 8};
    CHECK(all_close(cut(next, part(p.q, 12, 8), part(p.k, 12, 8), part(p.v, 12, 8)),
                    whole(next, part(p.q, 12, 8), part(p.k, 12, 8), part(p.v, 12, 8)), 0));
  }
}

TEST_CASE("a NaN or an infinity in k or v reaches the result of each head that reads it") {
  const Problem p{4, 2, 40, 6};
  for (const size_t bits : {8, 4})
    for (const float bad : {NAN, std::numeric_limits<float>::infinity()})
      for (const size_t chunk : {size_t(6), size_t(1)})
        for (const bool in_keys : {true, false}) {
          CAPTURE(bits);
          CAPTURE(in_keys);
          Tensor<2> k = p.k, v = p.v;
          (in_keys ? k : v)(3, 40 + 35) = bad;  // of group 1, in the rest of the row
          Layer layer(settings_with(4, 2, 40), 6, chunk, bits);
          const Tensor<2> got = layer.in_chunks(p.q, k, v, chunk);
          // In one call, a kernel may multiply what a query does not see by a weight of 0.
          for (size_t t = 0; t < 6; ++t)
            for (size_t h = 0; h < 4; ++h)
              if (t >= 3 || h < 2 || chunk == 1)
                CHECK(std::isnan(got(t, h * 40 + 36)) == (t >= 3 && h >= 2));
        }
}

TEST_CASE("the number of threads changes no bit, and later calls allocate nothing") {
  const size_t H = 9, G = 3, D = 64, S = 600;
  const Problem p{H, G, D, S};
  for (const size_t bits : {8, 4}) {
    set_threads(2);
    Layer two(settings_with(H, G, D), S, 200, bits), one(settings_with(H, G, D), S, 200, bits);
    const Tensor<2> by_two = two.in_chunks(p.q, p.k, p.v, 199);
    set_threads(1);
    CHECK(all_close(by_two, one.in_chunks(p.q, p.k, p.v, 199), 0));
    set_threads(2);

    const Block block(two.settings, two.weights);
    for (const size_t T : {1, 5}) {
      Tensor<2> q = draw(T, H * D, 4), k = draw(T, G * D, 5), v = k, heads = q;
      const Run run{0, S - 10, T};
      const Projected in{block, run, q, k, v};
      CHECK(allocates_nothing(1, [&] { two.attention(in, heads, {}); }));
    }
  }
}

TEST_CASE("a call whose kernel throws can be made again") {
  const Problem p{4, 2, 16, 8};
  bool refused = false;
  const BlockSettings settings = settings_with(4, 2, 16);
  Layer layer(settings, 8, 8, 8, 1,
              [&, kernel = grouped_kernel({&settings, 1}, 8, 8)](
                  ConstMatrix q, const KeyValueHeads& heads, const ScoreRule& rule, Matrix out) {
                if (!std::exchange(refused, true)) throw std::runtime_error("no result");
                kernel(q, heads, rule, out);
              });
  const Run run{0, 0, 8};
  REFUSES_AS(layer(run, p.q, p.k, p.v), "no result", std::runtime_error);
  Layer calm(settings, 8, 8, 8);
  CHECK(all_close(layer(run, p.q, p.k, p.v), calm(run, p.q, p.k, p.v), 0));
}

TEST_CASE("a row at the largest position that there is, far behind the cache, is refused") {
  QuantizedHeads heads = make_quantized_heads(8, 2, 6, 4);
  const auto far_behind = [&] { store_rows(draw(1, 8, 1), size_t(-1), heads); };
  // This position and one row add up to 0: whoever compares their sum with S takes the row.
  REQUIRE(ending_apart(far_behind).starts_with("threw"));
  REFUSES(far_behind(),
          "cache: 18446744073709551615 rows and T = 1 more, wanted at most S = 6 in all");
}

TEST_CASE("bad input is refused, and the message names it") {
  REFUSES(make_quantized_heads(5, 1, 1, 1), "bits: wanted 4 or 8, got 5");
  REFUSES(make_quantized_heads(8, 0, 1, 1),
          "G, the number of key and value heads: wanted at least 1, got 0");
  REFUSES(make_quantized_heads(8, 1, 0, 1),
          "S, the positions of the cache: wanted at least 1, got 0");
  REFUSES(make_quantized_heads(8, 1, 1, 0), "D, the width of a head: wanted at least 1, got 0");
  QuantizedHeads heads = make_quantized_heads(8, 2, 6, 4);
  REFUSES(store_rows(draw(2, 4, 1), 0, heads), "x: wanted shape [2, 8], got [2, 4]");
  REFUSES(store_rows(draw(2, 8, 1), 5, heads),
          "cache: 5 rows and T = 2 more, wanted at most S = 6 in all");

  const BlockSettings settings = settings_with(4, 2, 16);
  Layer layer(settings, 6, 4, 8);
  const Tensor<2> q = draw(5, 64, 1), k = draw(5, 32, 2);
  const auto part = [](const Tensor<2>& x, size_t count) {
    return ConstMatrix(x).rows_from(0, count);
  };
  const auto refuses = [&](const char* why, Runs runs, size_t of_q, size_t of_k, size_t of_v) {
    REFUSES(layer(runs, part(q, of_q), part(k, of_k), part(k, of_v)), why);
    CHECK(layer.attention.caches[0][0].length == 0);
  };
  refuses("k: wanted shape [4, 32], got [3, 32]", Run{0, 0, 4}, 4, 3, 4);
  refuses("v: wanted shape [4, 32], got [3, 32]", Run{0, 0, 4}, 4, 4, 3);
  refuses("sequence 0: wanted 1 to 4 rows in a call, got 5", Run{0, 0, 5}, 5, 5, 5);
  refuses("sequence 0: wanted 1 to 4 rows in a call, got 0", Run{0, 0, 0}, 0, 0, 0);
  REFUSES(layer(Run{0, 0, 2}, part(k, 2), part(k, 2), part(k, 2)),
          "q: wanted shape [2, 64], got [2, 32]");
  refuses("runs: wanted sequences from 0 to 0, got 1", std::vector<Run>{{0, 0, 1}, {1, 0, 1}}, 2, 2,
          2);
  refuses("runs: wanted 2 rows in all, got 1", Run{0, 0, 1}, 2, 2, 2);
  refuses("sequence 0: wanted a position of at most its length 0, got 1", Run{0, 1, 2}, 2, 2, 2);
  layer(Run{0, 0, 4}, part(q, 4), part(k, 4), part(k, 4));
  REFUSES(layer(Run{0, 4, 3}, part(q, 3), part(k, 3), part(k, 3)),
          "sequence 0: wanted at most S = 6 positions in all, got 4 and 3 more");
  CHECK(layer.attention.caches[0][0].length == 4);
  layer.settings.theta = 500;
  REFUSES(layer(Run{0, 4, 1}, part(q, 1), part(k, 1), part(k, 1)),
          "attention, layer 0: made for H = 4, G = 2, D = 16, theta = 10000, neighbours; wanted H "
          "= 4, G = 2, D = 16, theta = 500, neighbours");

  REFUSES(QuantizedAttention({&settings, 1}, 0, 1, 1, 8),
          "S, the positions of the caches: wanted at least 1, got 0");
  REFUSES(QuantizedAttention({&settings, 1}, 1, 0, 1, 8),
          "max_run_rows, the rows of a sequence in a call: wanted at least 1, got 0");
  REFUSES(QuantizedAttention({&settings, 1}, 1, 1, 0, 8), "sequences: wanted at least 1, got 0");
  REFUSES(QuantizedAttention({&settings, 1}, 1, 1, 1, 16), "bits: wanted 4 or 8, got 16");
  REFUSES(QuantizedAttention({}, 1, 1, 1, 8), "layers: wanted at least 1, got 0");
  const Config config = tiny_config();
  REFUSES(quantized_state(config, 8, 32), "bits: wanted 4 or 8, got 32");
  REFUSES(quantized_state(config, 257, 8),
          "S, the positions to make room for: wanted 1 to T_max = 256, got 257");
  // Arguments are checked before memory: nothing has room for so many positions.
  REFUSES(quantized_state(config, std::size_t(1) << 40, 8),
          "S, the positions to make room for: wanted 1 to T_max = 256, got 1099511627776");
  REFUSES(quantized_state(config, 8, 8, {.chunk = 0}),
          "chunk, the rows of a pass: wanted at least 1, got 0");
}

static double relative_error(const Tensor<2>& got, const Tensor<2>& want) {
  double apart = 0, all = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    apart += std::pow(double(got.data()[i]) - want.data()[i], 2);
    all += std::pow(double(want.data()[i]), 2);
  }
  return std::sqrt(apart / all);
}

TEST_CASE("a model's state with a rounded cache: near the float one, also chunk by chunk") {
  Random random(3);
  const Config config = tiny_config();
  const Model model(config, draw_model(config, random));
  std::vector<int> ids(100);
  for (size_t t = 0; t < ids.size(); ++t) ids[t] = int(t * 31 % 256);
  Tensor<2> want = empty(ids.size(), config.V), got = want;
  ModelState floats(config, ids.size());
  forward_all(model, floats, ids, want);
  for (const size_t bits : {8, 4})
    for (const size_t chunk : {512, 32, 1}) {
      CAPTURE(bits);
      CAPTURE(chunk);
      ModelState state = quantized_state(config, ids.size(), bits, {.chunk = chunk});
      CHECK(state.S == ids.size());
      forward_all(model, state, ids, got);
      CHECK(state.length() == ids.size());
      // Keys and values are off by about 0.5 % and 8 % of their size. Each layer adds what it makes
      // of them to the stream.
      CHECK(relative_error(got, want) < (bits == 8 ? 0.02 : 0.3));
      CHECK(relative_error(got, want) > 0);
      REFUSES(forward(model, state, std::span(ids).first(1), row(got, 0)),
              "ids: wanted at most S = 100 tokens in all, got 100 + 1");

      // A sequence that is cut and goes on is the same sequence again.
      const Tensor<2> once = got;
      truncate(state, 90);
      Tensor<2> rest = empty(10, config.V);
      forward_all(model, state, std::span(ids).subspan(90), rest);
      CHECK(all_close(rest, copy_of(ConstMatrix(once).rows_from(90, 10)), 1e-4));
      reset(state);
      forward_all(model, state, ids, got);
      CHECK(all_close(got, once, 0));
    }
}

TEST_CASE("a rounded cache takes 8.5 or 5 bits for a number, and the state may be moved") {
  const Config config = tiny_config();  // 2 layers, G = 2, D = 16
  CHECK(quantized_cache_bytes(preset("smollm2-135m"), 1, 8) == 30 * 2 * 3 * 64 * 8.5 / 8);
  CHECK(quantized_cache_bytes(preset("smollm2-135m"), 1, 4) == 30 * 2 * 3 * 64 * 5 / 8.0);
  CHECK(quantized_cache_bytes(config, 10, 8) == 10 * 2 * 2 * 2 * 34);  // D is padded to 32
  Random random(3);
  const Model model(config, draw_model(config, random));
  Tensor<1> logits = empty(config.V);
  ModelState other = quantized_state(config, 8, 8), state = std::move(other);
  const std::vector<int> ids = {1, 2, 3};
  forward(model, state, ids, row(logits));
  CHECK(state.length() == 3);
}

}  // namespace t2t::cache_test
