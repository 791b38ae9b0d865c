// What must be true of the row kernels, of the product and of the block that they make; run on the
// stand-in, and on a GPU where one is.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "08_block/block.hpp"
#include "11_flash_attention/kernels/block_kernels.hpp"
#include "11_flash_attention/kernels/rows/row_kernels.hpp"
#include "cuda/device.hpp"
#include "support/all_close.hpp"
#include "support/hashed_weights.hpp"
#include "support/kernels/device_numbers.hpp"
#include "support/refuses.hpp"

namespace t2t::kernels_rows_test {

using Numbers = std::vector<float>;
using Doubles = std::vector<double>;

constexpr float eps = 1e-5f;

static Numbers some(std::uint32_t seed, int rows, int cols, float scale = 4, float middle = 0) {
  const Tensor<2> x = numbers(seed, scale, middle, std::size_t(rows), std::size_t(cols));
  return {x.begin(), x.end()};
}

/// Whether the bits are the same, those of NaN too.
static bool same_bits(const Numbers& a, const Numbers& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// Each of the next four also writes over what it read, which must give the same bits.

static Numbers rms_norm_of(const Numbers& x, const Numbers& gain, int T, int C) {
  const DeviceBuffer<float> on_gain = on_device(gain);
  DeviceBuffer<float> on_x = on_device(x), y(x.size());
  launch_rms_norm(on_x.data(), on_gain.data(), eps, T, C, y.data());
  launch_rms_norm(on_x.data(), on_gain.data(), eps, T, C, on_x.data());
  CHECK(same_bits(on_x.download(), y.download()));
  return y.download();
}

static Numbers layer_norm_of(const Numbers& x, const Numbers& gain, const Numbers& bias, int T,
                             int C) {
  const DeviceBuffer<float> on_gain = on_device(gain), on_b = on_device(bias);
  DeviceBuffer<float> on_x = on_device(x), y(x.size());
  launch_layer_norm(on_x.data(), on_gain.data(), on_b.data(), eps, T, C, y.data());
  launch_layer_norm(on_x.data(), on_gain.data(), on_b.data(), eps, T, C, on_x.data());
  CHECK(same_bits(on_x.download(), y.download()));
  return y.download();
}

static Numbers softmax_of(const Numbers& x, int T, int S) {
  DeviceBuffer<float> on_x = on_device(x), y(x.size());
  launch_softmax(on_x.data(), T, S, y.data());
  launch_softmax(on_x.data(), T, S, on_x.data());
  CHECK(same_bits(on_x.download(), y.download()));
  return y.download();
}

static Numbers swiglu_of(const Numbers& gate, const Numbers& up, int T, int F) {
  DeviceBuffer<float> on_gate = on_device(gate), on_up = on_device(up), y(gate.size());
  launch_swiglu(on_gate.data(), on_up.data(), T, F, y.data());
  const Numbers apart = y.download();
  y.upload(gate);
  launch_swiglu(y.data(), on_up.data(), T, F, y.data());
  CHECK(same_bits(y.download(), apart));
  launch_swiglu(on_gate.data(), on_up.data(), T, F, on_up.data());
  CHECK(same_bits(on_up.download(), apart));
  return apart;
}

static Numbers product_of(const Numbers& x, const Numbers& w, int T, int in, int out) {
  const DeviceBuffer<float> on_x = on_device(x), on_w = on_device(w);
  DeviceBuffer<float> y(std::size_t(T) * out);
  launch_product(on_x.data(), on_w.data(), T, in, out, y.data());
  return y.download();
}

/// x turned; the tables hold S positions.
static Numbers rope_of(const Numbers& x, const Numbers& cos, const Numbers& sin, int S, int start,
                       int T, int heads, int D, RopePairs pairs) {
  DeviceBuffer<float> on_x = on_device(x);
  const DeviceBuffer<float> on_cos = on_device(cos), on_sin = on_device(sin);
  launch_rope(on_cos.data(), on_sin.data(), S, start, T, heads, D, pairs, on_x.data());
  return on_x.download();
}

TEST_CASE("row kernels by hand: one case of each") {
  const Numbers normed = rms_norm_of({3, 4}, {1, 2}, 1, 2);  // mean square 12.5, root 3.5355
  CHECK(normed[0] == doctest::Approx(0.84853).epsilon(1e-4));
  CHECK(normed[1] == doctest::Approx(2.26274).epsilon(1e-4));
  const Numbers centred = layer_norm_of({1, 3}, {1, 2}, {0, 10}, 1, 2);  // mean 2, variance 1
  CHECK(centred[0] == doctest::Approx(-1).epsilon(1e-4));
  CHECK(centred[1] == doctest::Approx(12).epsilon(1e-4));
  CHECK(rope_of({1, 2, 3, 4}, {0, 1}, {1, 0}, 1, 0, 1, 1, 4, RopePairs::neighbours) ==
        Numbers{-2, 1, 3, 4});
  CHECK(rope_of({1, 2, 3, 4}, {0, 1}, {1, 0}, 1, 0, 1, 1, 4, RopePairs::halves) ==
        Numbers{-3, 2, 1, 4});
  CHECK(softmax_of({5, 5, -INFINITY, 5, 5}, 1, 5) == Numbers{0.25, 0.25, 0, 0.25, 0.25});
  CHECK(swiglu_of({0, 100, -100}, {7, 2, 2}, 1, 3) == Numbers{0, 200, -0.0f});
  CHECK(product_of({1, 2, 3, 4}, {1, 1, 0, 1, 2, 0}, 2, 2, 3) == Numbers{3, 2, 2, 7, 4, 6});
}

/// One warp processes rows of up to 1024 numbers. long_rows_test.cpp has longer ones.
constexpr int sizes[] = {1, 31, 32, 33, 127, 576, 1024, 1025, 2100};

TEST_CASE("RMSNorm and LayerNorm: float64 agrees at every width") {
  for (const int C : sizes) {
    CAPTURE(C);
    const int T = 5;
    const Numbers x = some(1, T, C, 4, 1), gain = some(2, 1, C, 1, 1), bias = some(3, 1, C);
    Doubles rms, layer, rms_bound, layer_bound;
    const double K = C / 32 + 24;  // a lane's sum, the warp's, and the other operations
    for (int t = 0; t < T; ++t) {
      const float* row = &x[std::size_t(t) * C];
      double squares = 0, mean = 0, variance = 0, largest = 0;
      for (int c = 0; c < C; ++c) {
        squares += double(row[c]) * row[c] / C, mean += double(row[c]) / C;
        largest = std::max(largest, std::abs(double(row[c])));
      }
      for (int c = 0; c < C; ++c) variance += (row[c] - mean) * (row[c] - mean) / C;
      const double inverse = 1 / std::sqrt(variance + eps);
      for (int c = 0; c < C; ++c) {
        rms.push_back(gain[c] * row[c] / std::sqrt(squares + eps));
        rms_bound.push_back(K * u_float * std::abs(rms.back()));
        const double z = (row[c] - mean) * inverse;
        layer.push_back(gain[c] * z + bias[c]);
        layer_bound.push_back(
            K * u_float *
            (std::abs(gain[c]) * largest * inverse * (1 + std::abs(z)) + std::abs(bias[c])));
      }
    }
    CHECK(worst(rms_norm_of(x, gain, T, C), rms, rms_bound) <= 1);
    CHECK(worst(layer_norm_of(x, gain, bias, T, C), layer, layer_bound) <= 1);
  }
}

TEST_CASE("norms: mean square 1, mean 0, rows apart, and small rows feel eps") {
  const int T = 6, C = 1100;
  const Numbers x = some(4, T, C, 8, 3), ones(C, 1.0f), zeros(C, 0.0f);
  const Numbers y = rms_norm_of(x, ones, T, C), z = layer_norm_of(x, ones, zeros, T, C);
  for (int t = 0; t < T; ++t) {
    double squares = 0, mean = 0;
    for (int c = 0; c < C; ++c) {
      squares += double(y[t * C + c]) * y[t * C + c] / C, mean += double(z[t * C + c]) / C;
    }
    CHECK(squares == doctest::Approx(1).epsilon(1e-4));
    CHECK(std::abs(mean) <= 1e-5);
    const Numbers row(x.begin() + t * C, x.begin() + (t + 1) * C);
    CHECK(rms_norm_of(row, ones, 1, C) == Numbers(y.begin() + t * C, y.begin() + (t + 1) * C));
  }
  // The root of a mean square of 1e-6 and eps 1e-5 is 0.0033166, not 0.001 + 0.00001.
  CHECK(rms_norm_of({1e-3f, -1e-3f}, {1, 1}, 1, 2)[0] == doctest::Approx(0.301511).epsilon(1e-4));
}

TEST_CASE("the fused kernel gives the bits of a sum and a norm, and the sum stays in x") {
  for (const int C : sizes) {
    CAPTURE(C);
    const int T = 5;
    const Numbers x = some(5, T, C), added = some(6, T, C), gain = some(7, 1, C, 1, 1);
    const DeviceBuffer<float> on_added = on_device(added), on_gain = on_device(gain);
    DeviceBuffer<float> one = on_device(x), two = on_device(x), y(x.size()), y_two(x.size());
    launch_add_rms_norm(on_added.data(), on_gain.data(), eps, T, C, one.data(), y.data());
    launch_add_rows(on_added.data(), T, C, two.data());
    launch_rms_norm(two.data(), on_gain.data(), eps, T, C, y_two.data());
    Numbers sum = x;
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += added[i];
    CHECK(two.download() == sum);
    CHECK(one.download() == sum);
    const Numbers wanted = y_two.download();
    const Doubles bound(wanted.size(), 0.0);
    CHECK(worst(y.download(), Doubles(wanted.begin(), wanted.end()), bound) == 0);
  }
}

TEST_CASE("RoPE: float64 agrees for both pairings, any number of heads, and a start") {
  for (const int D : {2, 62, 64, 66, 128})
    for (const RopePairs pairs : {RopePairs::neighbours, RopePairs::halves}) {
      CAPTURE(D);
      const int T = 5, heads = 3, S = 12, start = 7, half = D / 2;
      const Numbers x = some(8, T, heads * D), angle = some(9, S, half, 6);
      Numbers cos, sin;
      for (const float a : angle) cos.push_back(std::cos(a)), sin.push_back(std::sin(a));
      Doubles want(x.size()), bound(x.size());
      for (int row = 0; row < T * heads; ++row)
        for (int i = 0; i < half; ++i) {
          const bool near = pairs == RopePairs::neighbours;
          const std::size_t first = std::size_t(row * D + (near ? 2 * i : i));
          const std::size_t second = first + std::size_t(near ? 1 : half);
          const std::size_t at = std::size_t((start + row / heads) * half + i);
          const double a = x[first], b = x[second], c = cos[at], s = sin[at];
          want[first] = a * c - b * s, want[second] = a * s + b * c;
          bound[first] = bound[second] = 4 * u_float * (std::abs(a) + std::abs(b));
        }
      CHECK(worst(rope_of(x, cos, sin, S, start, T, heads, D, pairs), want, bound) <= 1);
    }
}

TEST_CASE("softmax: float64 agrees, rows sum to 1, and high scores do not overflow") {
  for (const int S : sizes)
    for (const float scale : {4.0f, 400.0f}) {
      CAPTURE(S);
      const int T = 5;
      Numbers x = some(10, T, S, scale, scale);
      if (S > 1) x[1] = -INFINITY;
      Doubles want, bound;
      for (int t = 0; t < T; ++t) {
        const float* row = &x[std::size_t(t) * S];
        double highest = -INFINITY, sum = 0;
        for (int s = 0; s < S; ++s) highest = std::max(highest, double(row[s]));
        for (int s = 0; s < S; ++s) sum += std::exp(row[s] - highest);
        for (int s = 0; s < S; ++s) {
          want.push_back(std::exp(row[s] - highest) / sum);
          const double apart = std::isinf(row[s]) ? 0 : highest - row[s];
          bound.push_back((S / 32 + 24 + apart) * u_float * want.back() + 0x1p-126);
        }
      }
      const Numbers got = softmax_of(x, T, S);
      CHECK(worst(got, want, bound) <= 1);
      for (int t = 0; t < T; ++t) {
        double sum = 0;
        for (int s = 0; s < S; ++s) sum += got[std::size_t(t) * S + s];
        CHECK(sum == doctest::Approx(1).epsilon(1e-5));
      }
    }
}

TEST_CASE("SwiGLU: float64 agrees at every width") {
  for (const int F : sizes) {
    CAPTURE(F);
    const Numbers gate = some(11, 5, F, 40), up = some(12, 5, F);
    Doubles want, bound;
    for (std::size_t i = 0; i < gate.size(); ++i) {
      want.push_back(gate[i] / (1 + std::exp(-double(gate[i]))) * up[i]);
      bound.push_back(12 * u_float * std::abs(double(gate[i]) * up[i]));
    }
    CHECK(worst(swiglu_of(gate, up, 5, F), want, bound) <= 1);
  }
}

TEST_CASE("the product: float64 agrees at sizes that fill no tile") {
  for (const int T : {1, 33})
    for (const int in : {1, 31, 64, 127})
      for (const int out : {1, 32, 65}) {
        CAPTURE(T);
        CAPTURE(in);
        CAPTURE(out);
        const Numbers x = some(13, T, in), w = some(14, out, in);
        const ExactProduct exact = exact_product(x, w, T, in, out);
        const Doubles& want = exact.sums;
        Doubles bound;
        for (const double size : exact.sizes) bound.push_back((in + 2) * u_float * size);
        CHECK(worst(product_of(x, w, T, in, out), want, bound) <= 1);
      }
}

TEST_CASE("row kernels refuse sizes, positions and pointers that they cannot take") {
  float x[4] = {};
  REFUSES(launch_rms_norm(x, x, eps, 0, 1, x), "T: wanted at least 1, got 0");
  REFUSES(launch_rms_norm(x, x, -1, 1, 1, x), "eps: wanted 0 or more, got -1");
  REFUSES(launch_layer_norm(x, x, x, eps, 1, 0, x), "C: wanted at least 1, got 0");
  REFUSES(launch_layer_norm(x, x, nullptr, eps, 1, 1, x), "bias: wanted device memory, got 0");
  REFUSES(launch_add_rows(nullptr, 1, 1, x), "added: wanted device memory, got 0");
  REFUSES(launch_add_rms_norm(x, nullptr, eps, 1, 1, x, x), "gain: wanted device memory, got 0");
  const RopePairs pairs = RopePairs::halves;
  REFUSES(launch_rope(x, x, 4, 0, 1, 1, 3, pairs, x), "D: wanted an even number above 0, got 3");
  REFUSES(launch_rope(x, x, 4, 2, 3, 1, 2, pairs, x), "start + T: wanted at most S = 4, got 5");
  REFUSES(launch_rope(x, x, 4, -1, 3, 1, 2, pairs, x), "start: wanted at least 0, got -1");
  REFUSES(launch_rope(x, x, 4, 0, 1, 0, 2, pairs, x), "heads: wanted at least 1, got 0");
  REFUSES(launch_softmax(x, 1, 0, x), "S: wanted at least 1, got 0");
  REFUSES(launch_swiglu(x, x, 1, -1, x), "F: wanted at least 1, got -1");
  REFUSES(launch_product(x, x, 1, 0, 1, x), "in: wanted at least 1, got 0");
  REFUSES(launch_product(x, x, 2097121, 1, 1, x), "T: wanted at most 2097120, got 2097121");
}

static BlockSettings small_block() { return {.C = 192, .H = 3, .G = 1, .D = 64, .F = 100}; }

static BlockWeights weights_of(const BlockSettings& settings) {
  BlockWeights weights;
  for_each_tensor(weights, settings,
                  [](const TensorInfo& info, auto& tensor) { fill_numbers(info, 0, tensor); });
  return weights;
}

TEST_CASE("a block of kernels only computes what chapter 08's formula does") {
  for (const Pairing pairing : {Pairing::neighbours, Pairing::halves}) {
    BlockSettings s = small_block();
    s.pairing = pairing;
    const BlockWeights weights = weights_of(s);
    const RopeTable table = block_rope_table(s, 40);
    BlockKernels on_gpu(s, weights, table, 33);
    for (const std::size_t T : {33, 5}) {
      CAPTURE(T);
      const Tensor<2> x = numbers(1, 4, 0, T, s.C);
      const Tensor<2> want = block(x, weights, s, table);
      DeviceBuffer<float> stream{std::span<const float>(x.data(), x.size())};
      on_gpu.run(stream.data(), int(T));
      const Numbers result = stream.download();
      Tensor<2> got = empty(T, s.C);
      std::ranges::copy(result, got.begin());
      // As in chapter 08's tests, once for the formula and once for the kernels.
      const double K = 4 * std::sqrt(s.C) + 4 * std::sqrt(s.D) + std::sqrt(T) +
                       std::sqrt(s.H * s.D) + std::sqrt(s.F);
      double largest = 0;
      for (const float y : want) largest = std::max(largest, std::abs(double(y)));
      CHECK(all_close(got, want, 2 * K * u_float * largest));
    }
  }
}

static void make_block(BlockSettings settings, int T_max = 4) {
  BlockKernels(settings, weights_of(settings), block_rope_table(settings, 4), T_max);
}

TEST_CASE("a block that the kernels do not compute is refused") {
  BlockSettings s = small_block();
  REFUSES(make_block(s, 0), "T_max: wanted at least 1, got 0");
  const std::string without = "the block for a GPU: wanted one without ";
  s.norm = Norm::layer;
  REFUSES(make_block(s), without + "norms other than RMSNorm");
  s = small_block(), s.norm_place = NormPlace::after;
  REFUSES(make_block(s), without + "post-norm");
  s = small_block(), s.head_norms = true;
  REFUSES(make_block(s), without + "QK-norm");
  s = small_block(), s.activation = Activation::geglu;
  REFUSES(make_block(s), without + "a feed-forward network other than SwiGLU");
  s = small_block(), s.biases = Biases::qkv;
  REFUSES(make_block(s), without + "biases of q, k and v");
  s = small_block(), s.window = 3;
  REFUSES(make_block(s), without + "a sliding window");
  s = small_block(), s.uses_rope = false;
  REFUSES(make_block(s), without + "attention without RoPE");
  s = small_block(), s.D = 32;
  REFUSES(make_block(s), "D: wanted 64 or 128, got 32");
  s = small_block();
  const BlockWeights weights = weights_of(s);
  BlockKernels on_gpu(s, weights, block_rope_table(s, 4), 4);
  float x[1] = {};
  REFUSES(on_gpu.run(x, 5), "T: wanted 1 to 4, got 5");
  REFUSES(on_gpu.run(nullptr, 4), "x: wanted device memory, got 0");
}

}  // namespace t2t::kernels_rows_test
