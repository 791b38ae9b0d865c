// What must be true of the kernels with packed weights; run on the stand-in, and on a GPU where one
// is.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "12_quantization/formats/quantize.hpp"
#include "12_quantization/kernels/packed_kernels.hpp"
#include "12_quantization/packed/packed_rows.hpp"
#include "support/hashed_numbers.hpp"
#include "support/kernels/device_numbers.hpp"
#include "support/refuses.hpp"

namespace t2t::packed_kernels_test {

using Numbers = std::vector<float>;
using Doubles = std::vector<double>;

constexpr float eps = 1e-5f;
#if defined(__SANITIZE_THREAD__)  // the race detector is slow: a few tiles show what many do
static const std::vector<int> rows = {1, 5}, inputs = {96}, outputs = {65, 140};
#else
static const std::vector<int> rows = {1, 4, 5, 130}, inputs = {32, 96, 288}, outputs = {1, 65, 140};
#endif

struct Type {
  TensorType stored;
  DeviceForm form;
};
static const std::vector<Type> types = {{TensorType::q8_0, DeviceForm::q8_0},
                                        {TensorType::q4_0, DeviceForm::q4_0},
                                        {TensorType::q4_1, DeviceForm::q4_1}};

static Numbers some(std::uint32_t seed, int count, float scale = 4, float middle = 0) {
  const Tensor<1> x = numbers(seed, scale, middle, std::size_t(count));
  return {x.begin(), x.end()};
}
/// Numbers that a bf16 holds.
static Numbers some_rounded(std::uint32_t seed, int count, float scale = 4) {
  return floats_of(in_bf16(some(seed, count, scale)));
}

/// Packed weights, on the host and on the device. Their middle is not 0, so that minima matter.
struct Weights {
  Type type;
  PackedRows packed;
  DeviceBuffer<std::uint8_t> bytes;

  Weights(Type type, std::uint32_t seed, int out, int in)
      : Weights(type, numbers(seed, 1, 0.2f, std::size_t(out), std::size_t(in))) {}
  Weights(Type type, const Tensor<2>& floats)
      : type(type),
        packed(pack_rows(type.stored, quantize_rows(type.stored, floats), floats.shape(0),
                         floats.shape(1))),
        bytes(on_device(packed.bytes)) {}

  PackedOnDevice on() const { return {type.form, bytes.data()}; }
  Numbers floats() const {
    Numbers all(packed.rows * packed.cols);
    for (std::size_t r = 0; r < packed.rows; ++r)
      unpack_row(packed, r, Row(&all[r * packed.cols], packed.cols));
    return all;
  }
  /// |minimum| of each weight's block.
  Numbers minima() const {
    Numbers all(packed.rows * packed.cols, 0.0f);
    if (packed.form.has_minimum)
      for (std::size_t i = 0; i < all.size(); ++i) {
        const std::size_t r = i / packed.cols, b = i % packed.cols / 32;
        all[i] = std::abs(half_at(&packed.bytes[packed.head(r / 16, b) + 2 * (16 + r % 16)]));
      }
    return all;
  }
};

/// x·wᵀ of unpacked weights in float64, and by how much float sums of few rows, or of many, may be
/// off.
//
// Few rows: a weight is scale·number + minimum, whose parts have up to |w| + 2·|minimum| together.
// A part goes through 8 additions in its piece, one of each of the lane's pieces, 3 of lanes, 8 of
// warps, and 3 roundings of products; unpacking on the host rounded the weight once. Many rows:
// each weight is rounded to bf16, after two roundings of floats, and the tensor cores' sums are off
// by 2u for each of `in` additions.
struct Sums {
  Doubles sum, bound;
};
static Sums sums_of(const Numbers& x, const Weights& w, int T, int in, int out) {
  const Numbers floats = w.floats(), minima = w.minima();
  const ExactProduct exact = exact_product(x, floats, T, in, out);
  const ExactProduct of_minima = exact_product(x, minima, T, in, out);
  Sums sums{exact.sums, {}};
  for (std::size_t i = 0; i < exact.sizes.size(); ++i) {
    const double size = exact.sizes[i] + 2 * of_minima.sizes[i];
    const double few = (in / 128 + 24) * u_float * size;
    const double many = (u_bf16 + 3 * u_float) * exact.sizes[i] + 2 * in * u_float * size;
    sums.bound.push_back(T <= few_rows ? few : many * (1 + u_bf16));
  }
  return sums;
}

/// A stream of more rows than are read, its gain, and scratch for the norms.
struct Stream {
  int T, C;
  Numbers x = some(1, 2 * T * C, 4, 1), gain = some(2, C, 1, 1);
  DeviceBuffer<float> on_x = on_device(x), on_gain = on_device(gain);
  DeviceBuffer<bf16> scratch{std::size_t(T * C)};

  NormedRows rows() { return {on_x.data(), nullptr, on_gain.data(), eps, scratch.data()}; }
  Numbers normed() {
    launch_rms_norm(rows(), T, C);
    return floats_of(scratch.download());
  }
};

/// The first `count` numbers of y; the others must be NaN still.
static Numbers written(const Numbers& all, int count) {
  CHECK(std::all_of(all.begin() + count, all.end(), [](float x) { return std::isnan(x); }));
  return {all.begin(), all.begin() + count};
}

template <class Check>
static void for_all_sizes(Check check) {
  for (const Type type : types)
    for (const int T : rows)
      for (const int in : inputs)
        for (const int out : outputs) {
          CAPTURE(type_name(type.stored));
          CAPTURE(T);
          CAPTURE(in);
          CAPTURE(out);
          if (T < 100 || (in == 96 && out == 65)) check(type, T, in, out);
        }
}

TEST_CASE("by hand: a row of Q4_0 with scale ½, and one of Q4_1") {
  // q − 8 are −8, 2 and 7; all others are 0. x is 1 for the first, 2 for the second, 4 for the
  // third.
  Tensor<2> row = xt::zeros<float>({1, 32});
  row(0, 0) = -4, row(0, 5) = 1, row(0, 21) = 3.5f;
  Numbers x(32, 0.0f);
  x[0] = 1, x[5] = 2, x[21] = 4;
  const DeviceBuffer<bf16> on_x = on_device(in_bf16(x));
  DeviceBuffer<float> y = on_device(Numbers{100});
  const Weights symmetric({TensorType::q4_0, DeviceForm::q4_0}, row);
  launch_packed_add(on_x.data(), symmetric.on(), 1, 32, 1, y.data());
  CHECK(y.download() == Numbers{100 - 4 + 2 + 14});

  // Scale ½ and minimum −4: q are 0, 10 and 15, and 8 elsewhere.
  const Weights shifted({TensorType::q4_1, DeviceForm::q4_1}, row);
  y.upload(Numbers{0});
  launch_packed_add(on_x.data(), shifted.on(), 1, 32, 1, y.data());
  CHECK(y.download() == Numbers{-4 + 2 + 14});
}

TEST_CASE("the embedding from a packed table has unpack_row's bits") {
  for (const Type type : types)
    for (const int C : {32, 96, 576}) {
      CAPTURE(C);
      const Weights table(type, 3, 37, C);
      const std::vector<int> ids = {36, 0, 17, 17, 15, 16};
      const DeviceBuffer<int> on_ids = on_device(ids);
      DeviceBuffer<float> x(ids.size() * std::size_t(C));
      launch_packed_embed(table.on(), on_ids.data(), int(ids.size()), C, x.data());
      const Numbers all = table.floats();
      Numbers want;
      for (const int id : ids)
        want.insert(want.end(), all.begin() + id * C, all.begin() + (id + 1) * C);
      CHECK(x.download() == want);
    }
}

TEST_CASE("products with packed weights: float64 agrees at every size") {
  for_all_sizes([](Type type, int T, int in, int out) {
    Stream s{.T = T, .C = in};
    const Weights w(type, 4, out, in);
    DeviceBuffer<float> y(std::size_t(T * out + 200));
    launch_packed_store(s.rows(), w.on(), T, in, out, y.data());
    const Numbers got = written(y.download(), T * out);
    const Sums want = sums_of(s.normed(), w, T, in, out);
    CHECK(worst(got, want.sum, want.bound) <= 1);
  });
}

TEST_CASE("a packed product that is added: float64 agrees, and what was there before is kept") {
  for_all_sizes([](Type type, int T, int in, int out) {
    const Numbers x = some_rounded(5, T * in);
    const Weights w(type, 6, out, in);
    const DeviceBuffer<bf16> on_x = on_device(in_bf16(x));
    Numbers before = some(7, T * out, 40);
    before.resize(before.size() + 200, std::nanf(""));
    DeviceBuffer<float> y = on_device(before);
    launch_packed_add(on_x.data(), w.on(), T, in, out, y.data());
    Sums want = sums_of(x, w, T, in, out);
    for (std::size_t i = 0; i < want.sum.size(); ++i) {
      want.sum[i] += before[i];
      want.bound[i] += u_float * std::abs(want.sum[i]);
    }
    CHECK(worst(written(y.download(), T * out), want.sum, want.bound) <= 1);
  });
}

TEST_CASE("packed gate and up in one product: float64 agrees") {
  for_all_sizes([](Type type, int T, int in, int out) {
    Stream s{.T = T, .C = in};
    const Weights w_gate(type, 8, out, in), w_up(type, 9, out, in);
    DeviceBuffer<bf16> y(std::size_t(T * out + 200));
    launch_packed_swiglu(s.rows(), w_gate.on(), w_up.on(), T, in, out, y.data());
    const Numbers got = written(floats_of(y.download()), T * out), x = s.normed();
    const Sums gate = sums_of(x, w_gate, T, in, out), up = sums_of(x, w_up, T, in, out);
    Doubles want, bound;
    for (std::size_t i = 0; i < gate.sum.size(); ++i) {
      const double silu = gate.sum[i] / (1 + std::exp(-gate.sum[i]));
      want.push_back(silu * up.sum[i]);
      // silu's slope is at most 1.1; exp, the division and the products are 8 roundings at most.
      // Where both sums are off, so is their product.
      const double of_sums =
          1.1 * gate.bound[i] * (std::abs(up.sum[i]) + up.bound[i]) + std::abs(silu) * up.bound[i];
      bound.push_back(1.01 * (of_sums + (u_bf16 + 8 * u_float) * std::abs(want.back())));
    }
    CHECK(worst(got, want, bound) <= 1);
  });
}

TEST_CASE("a row's packed product has the same bits alone as among few rows, and as among many") {
  const int in = 96, out = 65;
  for (const Type type : types) {
    const Weights w(type, 4, out, in);
    const Numbers x = some_rounded(5, 140 * in);
    const auto last_of = [&](int T) {
      const DeviceBuffer<bf16> on_x = on_device(in_bf16(Numbers(x.end() - T * in, x.end())));
      DeviceBuffer<float> y = on_device(Numbers(std::size_t(T * out), 0.0f));
      launch_packed_add(on_x.data(), w.on(), T, in, out, y.data());
      const Numbers all = y.download();
      return Numbers(all.end() - out, all.end());
    };
    CHECK(last_of(1) == last_of(4));
    CHECK(last_of(5) == last_of(131));
  }
}

TEST_CASE("a NaN in x reaches its own row of the packed product, and no other") {
  const int T = 5, in = 64, out = 40;
  for (const Type type : types)
    for (const int rows_of_x : {3, T}) {
      Numbers x = some_rounded(5, rows_of_x * in);
      x[std::size_t(2 * in + 33)] = std::nanf("");
      const Weights w(type, 6, out, in);
      const DeviceBuffer<bf16> on_x = on_device(in_bf16(x));
      DeviceBuffer<float> y = on_device(Numbers(std::size_t(rows_of_x * out), 0.0f));
      launch_packed_add(on_x.data(), w.on(), rows_of_x, in, out, y.data());
      const Numbers got = y.download();
      for (int i = 0; i < rows_of_x * out; ++i) CHECK(std::isnan(got[i]) == (i / out == 2));
    }
}

TEST_CASE("the kernels with packed weights refuse sizes and pointers that they cannot take") {
  alignas(16) float memory[16] = {};
  float* x = memory;
  bf16* h = reinterpret_cast<bf16*>(memory);
  const auto* bytes = reinterpret_cast<const unsigned char*>(memory);
  const PackedOnDevice w = {DeviceForm::q4_0, bytes};
  const NormedRows rows = {x, nullptr, x, eps, h};
  REFUSES(launch_packed_embed(w, nullptr, 1, 32, x), "ids: wanted device memory, got 0");
  REFUSES(launch_packed_store(rows, w, 0, 32, 1, x), "T: wanted 1 to 65535, got 0");
  REFUSES(launch_packed_store(rows, w, 1, 40, 1, x), "in: wanted a multiple of 32, got 40");
  REFUSES(launch_packed_store(rows, {w.form, nullptr}, 1, 32, 1, x),
          "w: wanted device memory, got 0");
  REFUSES(launch_packed_add(h, {w.form, bytes + 8}, 1, 32, 1, x),
          "w: wanted rows that begin at multiples of 16 bytes, got 8");
  REFUSES(launch_packed_swiglu(rows, w, {DeviceForm::q8_0, bytes}, 1, 32, 1, h),
          "w_up: wanted the form of w_gate, got 0");
}

}  // namespace t2t::packed_kernels_test
