// Both norms compared with a copy of as many bytes and beside the matrix products of one block, and
// what vector registers add to a loop over a row.
#include "timing/bench.hpp"

#include <cmath>

#include "02_normalization/fast/layer_norm_rows.hpp"
#include "02_normalization/fast/rms_norm_rows.hpp"
#include "02_normalization/layer_norm.hpp"
#include "02_normalization/rms_norm.hpp"
#include "lanes.hpp"
#include "linalg.hpp"
#include "random.hpp"
#include "rows.hpp"

namespace t2t {

static bool near(const Tensor<2>& got, const Tensor<2>& want) {
  for (std::size_t i = 0; i < want.size(); ++i)
    if (!(std::abs(got.data()[i] - want.data()[i]) <= 1e-4f)) return false;
  return true;
}

static void bench_size(Bench& bench, std::size_t T, std::size_t C) {
  Random random(1);
  const Tensor<2> x = random.normal<2>({T, C});
  const Tensor<1> gain = random.normal<1>({C}, 0.1f, 1), bias = random.normal<1>({C}, 0.1f);
  Tensor<2> y = empty(T, C);
  const double bytes = 2.0 * double(x.size()) * sizeof(float);
  const std::string size = " [" + std::to_string(T) + ", " + std::to_string(C) + "]";

  rms_norm_rows(x, row(gain), 1e-5f, y);
  bench.expect_right("rms_norm_rows" + size, near(y, rms_norm(x, gain)));
  bench.against_copy("rms_norm_rows" + size, bytes, [&] { rms_norm_rows(x, row(gain), 1e-5f, y); });
  layer_norm_rows(x, row(gain), row(bias), 1e-5f, y);
  bench.expect_right("layer_norm_rows" + size, near(y, layer_norm(x, gain, bias)));
  bench.against_copy("layer_norm_rows" + size, bytes,
                     [&] { layer_norm_rows(x, row(gain), row(bias), 1e-5f, y); });
}

static void bench_formulas(Bench& bench) {
  Random random(1);
  const Tensor<2> x = random.normal<2>({512, 576});  // [T, C]
  const Tensor<1> gain = xt::ones<float>({576}), bias = xt::zeros<float>({576});
  Tensor<2> y = empty(512, 576), z = empty(512, 576);
  bench.against(
      "rms_norm_rows [512, 576]", [&] { rms_norm_rows(x, row(gain), 1e-5f, y); }, "the formula",
      [&] { z = rms_norm(x, gain); });
  bench.against(
      "layer_norm_rows [512, 576]", [&] { layer_norm_rows(x, row(gain), row(bias), 1e-5f, y); },
      "the formula", [&] { z = layer_norm(x, gain, bias); });
  bench.against(
      "rms_norm_rows [512, 576]", [&] { rms_norm_rows(x, row(gain), 1e-5f, y); }, "layer_norm_rows",
      [&] { layer_norm_rows(x, row(gain), row(bias), 1e-5f, y); });
}

/// What dropping the mean saves: the seven products of a block (H = 9, G = 3) and its two norms.
static void bench_block(Bench& bench) {
  constexpr std::size_t T = 512, C = 576, G_D = 192, F = 1536;
  Random random(1);
  const Tensor<2> w_c = random.normal<2>({C, C}), w_g = random.normal<2>({G_D, C});
  const Tensor<2> w_up = random.normal<2>({F, C}), w_down = random.normal<2>({C, F});
  const Tensor<2> x = random.normal<2>({T, C});
  const Tensor<1> gain = xt::ones<float>({C}), bias = xt::zeros<float>({C});
  Tensor<2> y = empty(T, C), z = empty(T, C), kv = empty(T, G_D), up = random.normal<2>({T, F});

  const auto products = [&] {
    for (int i = 0; i < 2; ++i) matmul_bt(y, w_c, z), matmul_bt(y, w_g, kv), matmul_bt(y, w_up, up);
    matmul_bt(up, w_down, z);
  };
  const auto rms = [&] {
    for (int i = 0; i < 2; ++i) rms_norm_rows(x, row(gain), 1e-5f, y);
    products();
  };
  const auto layer = [&] {
    for (int i = 0; i < 2; ++i) layer_norm_rows(x, row(gain), row(bias), 1e-5f, y);
    products();
  };
  bench.against("a block's products and two RMSNorms", rms, "and two LayerNorms", layer);
}

static float plain_sum_of_squares(ConstRow x) {
  float sum = 0;
  for (const float value : x) sum += value * value;
  return sum;
}
static float sum_of_squares_in_one_register(ConstRow x) {
  Lanes sum(0);
  for (std::size_t c = 0; c < x.size(); c += Lanes::size)
    sum = xsimd::fma(Lanes::load_unaligned(&x[c]), Lanes::load_unaligned(&x[c]), sum);
  return add_lanes(sum);
}

/// Loops of one core, over rows that fit a cache and are a whole number of registers.
static void bench_lanes(Bench& bench) {
  constexpr std::size_t T = 64, C = 576;
  Random random(1);
  const Tensor<2> x = random.normal<2>({T, C});
  Tensor<2> y = empty(T, C), z = empty(T, C);
  Tensor<1> sums = empty(T), others = empty(T);
  const auto each_row = [&](Tensor<1>& to, float (*sum)(ConstRow)) {
    for (std::size_t t = 0; t < T; ++t) to(t) = sum(row(x, t));
  };
  const auto against = [&](const char* name, float (*other)(ConstRow)) {
    const auto lanes = [&] { each_row(sums, sum_of_squares); };
    const auto work = [&] { each_row(others, other); };
    lanes(), work();
    bool right = true;
    for (std::size_t t = 0; t < T; ++t)
      right = right && std::abs(sums(t) - others(t)) <= 1e-3f * sums(t);
    bench.expect_right("sum_of_squares", right);
    bench.against("sum_of_squares [64, 576]", lanes, name, work);
  };
  against("a plain loop", plain_sum_of_squares);
  against("one register", sum_of_squares_in_one_register);

  const auto exp_in_registers = [&] {
    for (std::size_t t = 0; t < T; ++t)
      map_row(
          row(y, t), [](Lanes v) { return xsimd::exp(v); }, row(x, t));
  };
  const auto exp_one_by_one = [&] {
    for (std::size_t i = 0; i < x.size(); ++i) z.data()[i] = std::exp(x.data()[i]);
  };
  exp_in_registers(), exp_one_by_one();
  bench.expect_right("exp in registers", near(y, z));
  bench.against("exp in registers [64, 576]", exp_in_registers, "std::exp in a loop",
                exp_one_by_one);
}

void bench(Bench& bench) {
  bench_size(bench, 8192, 2048);
  bench_size(bench, 16384, 768);
  bench_formulas(bench);
  bench_block(bench);
  if (thread_count() == 1) bench_lanes(bench);
}

}  // namespace t2t
