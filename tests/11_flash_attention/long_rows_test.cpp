// What must be true of the norms, the sums and softmax of rows that one warp, 4 or 8 warps process,
// and of rows that no block keeps in registers; run on the stand-in, and on a GPU where one is.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include "11_flash_attention/kernels/rows/row_kernels.hpp"
#include "cuda/device.hpp"
#include "support/hashed_weights.hpp"
#include "support/kernels/device_numbers.hpp"

namespace t2t::long_rows_test {

using Numbers = std::vector<float>;
using Doubles = std::vector<double>;

constexpr float eps = 1e-5f;

/// 1024 elements stay in the registers of a warp, 4096 in those of 4 warps, and 8192 in those of 8.
constexpr int sizes[] = {1024, 1025, 2048, 4096, 4097, 8192, 8193};

static int warps_of(int C) { return C <= 1024 ? 1 : C <= 4096 ? 4 : 8; }
/// How many additions a term of a row's sum goes through at most: those of its lane, five of its
/// warp, and one for each warp.
static int additions(int C) { return (C - 1) / (32 * warps_of(C)) + 1 + 5 + warps_of(C); }

static Numbers some(std::uint32_t seed, int rows, int cols, float scale = 4, float middle = 0) {
  const Tensor<2> x = numbers(seed, scale, middle, std::size_t(rows), std::size_t(cols));
  return {x.begin(), x.end()};
}

struct Rows {
  int T, C;
  Numbers x = some(1, T, C, 4, 1), added = some(2, T, C);
  Numbers gain = some(3, 1, C, 1, 1), bias = some(4, 1, C);

  /// Row t alone.
  Rows row(int t) const {
    const auto cut = [&](const Numbers& all) {
      return Numbers(all.begin() + long(t) * C, all.begin() + long(t + 1) * C);
    };
    return {1, C, cut(x), cut(added), gain, bias};
  }
};

/// The results of all row kernels with a row's sum, and of the sum of two rows.
enum Result { rms, layer, softmax, sum, normed_sum, count_of_results };
using Results = std::array<Numbers, count_of_results>;

static Results results_of(const Rows& r) {
  const DeviceBuffer<float> gain = on_device(r.gain), bias = on_device(r.bias);
  const DeviceBuffer<float> x = on_device(r.x), added = on_device(r.added);
  Results all;
  DeviceBuffer<float> y(r.x.size()), stream = on_device(r.x);
  launch_rms_norm(x.data(), gain.data(), eps, r.T, r.C, y.data());
  all[rms] = y.download();
  launch_layer_norm(x.data(), gain.data(), bias.data(), eps, r.T, r.C, y.data());
  all[layer] = y.download();
  launch_softmax(x.data(), r.T, r.C, y.data());
  all[softmax] = y.download();
  launch_add_rms_norm(added.data(), gain.data(), eps, r.T, r.C, stream.data(), y.data());
  all[sum] = stream.download(), all[normed_sum] = y.download();
  return all;
}

/// The same by kernels that write over what they read, and by a sum and a norm apart.
static Results results_in_place(const Rows& r) {
  const DeviceBuffer<float> gain = on_device(r.gain), bias = on_device(r.bias);
  const DeviceBuffer<float> added = on_device(r.added);
  Results all;
  DeviceBuffer<float> x = on_device(r.x);
  launch_rms_norm(x.data(), gain.data(), eps, r.T, r.C, x.data());
  all[rms] = x.download();
  x.upload(r.x);
  launch_layer_norm(x.data(), gain.data(), bias.data(), eps, r.T, r.C, x.data());
  all[layer] = x.download();
  x.upload(r.x);
  launch_softmax(x.data(), r.T, r.C, x.data());
  all[softmax] = x.download();
  x.upload(r.x);
  launch_add_rows(added.data(), r.T, r.C, x.data());
  all[sum] = x.download();
  launch_rms_norm(x.data(), gain.data(), eps, r.T, r.C, x.data());
  all[normed_sum] = x.download();
  return all;
}

/// What a row's elements should be, and how far from it they may be.
struct Wanted {
  Doubles numbers, bounds;
};

/// Up to 8 roundings besides those of the sum: the square, the mean, eps, the root, its inverse,
/// and two products.
static void add_rms(const float* x, const Numbers& gain, Wanted& want) {
  const std::size_t C = gain.size();
  double squares = 0;
  for (std::size_t c = 0; c < C; ++c) squares += double(x[c]) * x[c] / double(C);
  for (std::size_t c = 0; c < C; ++c) {
    want.numbers.push_back(gain[c] * x[c] / std::sqrt(squares + eps));
    want.bounds.push_back((additions(int(C)) + 8) * u_float * std::abs(want.numbers.back()));
  }
}

/// The mean may be off by a share of the largest element, and everything else by a share of itself.
static void add_layer(const float* x, const Numbers& gain, const Numbers& bias, Wanted& want) {
  const std::size_t C = gain.size();
  double mean = 0, variance = 0, largest = 0;
  for (std::size_t c = 0; c < C; ++c)
    mean += double(x[c]) / double(C), largest = std::max(largest, std::abs(double(x[c])));
  for (std::size_t c = 0; c < C; ++c) variance += (x[c] - mean) * (x[c] - mean) / double(C);
  const double inverse = 1 / std::sqrt(variance + eps);
  for (std::size_t c = 0; c < C; ++c) {
    const double z = (x[c] - mean) * inverse;
    want.numbers.push_back(gain[c] * z + bias[c]);
    want.bounds.push_back(
        (additions(int(C)) + 8) * u_float *
        (std::abs(gain[c]) * (largest * inverse + std::abs(z)) + std::abs(double(bias[c]))));
  }
}

/// A rounding of x − highest moves its exponential by a share of that difference. The sum is moved
/// by the shares of its terms.
static void add_softmax(const float* x, int S, Wanted& want) {
  double highest = -INFINITY, sum = 0, of_differences = 0;
  for (int s = 0; s < S; ++s) highest = std::max(highest, double(x[s]));
  for (int s = 0; s < S; ++s) sum += std::exp(x[s] - highest);
  for (int s = 0; s < S; ++s) of_differences += std::exp(x[s] - highest) / sum * (highest - x[s]);
  for (int s = 0; s < S; ++s) {
    want.numbers.push_back(std::exp(x[s] - highest) / sum);
    const double kinds = additions(S) + 8 + (highest - x[s]) + of_differences;
    want.bounds.push_back(kinds * u_float * want.numbers.back());
  }
}

TEST_CASE("rows of one, 4 and 8 warps, and longer ones: float64 agrees") {
  for (const int C : sizes) {
    CAPTURE(C);
    const Rows r{3, C};
    Numbers of_sum = r.x;
    for (std::size_t i = 0; i < of_sum.size(); ++i) of_sum[i] += r.added[i];
    Wanted by_rms, by_layer, by_softmax, by_normed_sum;
    for (int t = 0; t < r.T; ++t) {
      const long at = long(t) * C;
      add_rms(&r.x[at], r.gain, by_rms), add_layer(&r.x[at], r.gain, r.bias, by_layer);
      add_softmax(&r.x[at], C, by_softmax), add_rms(&of_sum[at], r.gain, by_normed_sum);
    }
    const Results got = results_of(r);
    CHECK(worst(got[rms], by_rms.numbers, by_rms.bounds) <= 1);
    CHECK(worst(got[layer], by_layer.numbers, by_layer.bounds) <= 1);
    CHECK(worst(got[softmax], by_softmax.numbers, by_softmax.bounds) <= 1);
    CHECK(worst(got[normed_sum], by_normed_sum.numbers, by_normed_sum.bounds) <= 1);
    CHECK(got[sum] == of_sum);
  }
}

TEST_CASE("long rows: the same bits in place, alone, and by a sum and a norm apart") {
  for (const int C : sizes) {
    CAPTURE(C);
    const Rows r{3, C};
    const Results together = results_of(r), in_place = results_in_place(r);
    const Results last = results_of(r.row(2));
    for (std::size_t i = 0; i < together.size(); ++i) {
      CAPTURE(i);
      CHECK(in_place[i] == together[i]);
      CHECK(last[i] == Numbers(together[i].end() - C, together[i].end()));
    }
  }
}

TEST_CASE("long rows: no bit depends on the order of the threads") {
  const char* set = std::getenv("T2T_ORDER");
  const std::string before = set == nullptr ? "forward" : set;
  for (const int C : sizes) {
    CAPTURE(C);
    const Rows r{2, C};
    const Results one = results_of(r);
    for (const char* order : {"forward", "reverse", "1", "2"}) {
      CAPTURE(order);
      setenv("T2T_ORDER", order, 1);
      const Results other = results_of(r);
      setenv("T2T_ORDER", before.c_str(), 1);
      CHECK(other == one);
    }
  }
}

TEST_CASE("long rows: a NaN in any warp's part reaches its whole row, and no other") {
  for (const int C : {2048, 8193})
    for (const int at : {0, C / 2, C - 1}) {
      CAPTURE(C);
      CAPTURE(at);
      Rows r{3, C};
      const Results before = results_of(r);
      r.x[std::size_t(C + at)] = std::numeric_limits<float>::quiet_NaN();
      const Results after = results_of(r);
      for (const Result i : {rms, layer, softmax, normed_sum}) {
        CAPTURE(i);
        const auto first = after[i].begin() + C, last = first + C;
        CHECK(std::all_of(first, last, [](float y) { return std::isnan(y); }));
        CHECK(std::equal(after[i].begin(), first, before[i].begin()));
        CHECK(std::equal(last, after[i].end(), before[i].begin() + 2 * C));
      }
    }
}

}  // namespace t2t::long_rows_test
