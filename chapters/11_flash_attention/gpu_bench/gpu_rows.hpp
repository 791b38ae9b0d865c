// The row kernels for gpu_bench.cpp: tensors on the device and on the host, the bytes that each
// kernel must move, and the error of its result.
//
// Bytes are those of the tensors alone, each read or written once: gains and tables are small.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "04_causal_attention/gpu_bench/gpu_problem.hpp"
#include "11_flash_attention/kernels/rows/row_kernels.hpp"
#include "cuda/device.hpp"

namespace t2t {

/// x, added and the result are [T, C]; heads are 64 wide, so C must be a multiple of 64.
struct RowTensors {
  static constexpr int D = 64;
  static constexpr float eps = 1e-5f;

  int T, C;
  std::vector<float> x = draw<float>(std::size_t(T) * C, 1), added = draw<float>(x.size(), 2);
  std::vector<float> gain = draw<float>(std::size_t(C), 3), bias = draw<float>(std::size_t(C), 4);
  std::vector<float> turns = draw<float>(std::size_t(T) * D / 2, 5);  // in place of cos and sin
  DeviceBuffer<float> on_x{std::span<const float>(x)}, on_added{std::span<const float>(added)};
  DeviceBuffer<float> on_gain{std::span<const float>(gain)}, on_bias{std::span<const float>(bias)};
  DeviceBuffer<float> on_turns{std::span<const float>(turns)}, y{x.size()};
};

/// Writes what row t of the result should be, in float64.
using WantedRow = std::function<void(int t, std::vector<double>& want)>;

struct RowKernel {
  const char* name;
  int tensors;  // how many times [T, C] elements must be read or written
  std::function<void()> work;
  const DeviceBuffer<float>* result;
  WantedRow wanted;  // given the initial inputs
};

/// gain · x / √(mean of x² + eps) for row t of x, or of x + added.
inline void wanted_rms_norm(const RowTensors& r, int t, bool with_added, std::vector<double>& y) {
  double squares = 0;
  for (std::size_t c = 0; c < y.size(); ++c) {
    const std::size_t i = std::size_t(t) * y.size() + c;
    y[c] = double(r.x[i]) + (with_added ? double(r.added[i]) : 0);
    squares += y[c] * y[c];
  }
  const double rms = std::sqrt(squares / double(y.size()) + double(r.eps));
  for (std::size_t c = 0; c < y.size(); ++c) y[c] *= double(r.gain[c]) / rms;
}

/// The same for LayerNorm of x alone.
inline void wanted_layer_norm(const RowTensors& r, int t, std::vector<double>& y) {
  double mean = 0, variance = 0;
  for (std::size_t c = 0; c < y.size(); ++c)
    mean += (y[c] = double(r.x[std::size_t(t) * y.size() + c])) / double(y.size());
  for (const double x : y) variance += (x - mean) * (x - mean) / double(y.size());
  const double root = std::sqrt(variance + double(r.eps));
  for (std::size_t c = 0; c < y.size(); ++c)
    y[c] = double(r.gain[c]) * (y[c] - mean) / root + double(r.bias[c]);
}

inline void wanted_softmax(const RowTensors& r, int t, std::vector<double>& y) {
  double sum = 0;
  for (std::size_t c = 0; c < y.size(); ++c)
    sum += y[c] = std::exp(double(r.x[std::size_t(t) * y.size() + c]));
  for (double& weight : y) weight /= sum;
}

inline void wanted_swiglu(const RowTensors& r, int t, std::vector<double>& y) {
  for (std::size_t c = 0; c < y.size(); ++c) {
    const std::size_t i = std::size_t(t) * y.size() + c;
    y[c] = double(r.x[i]) / (1 + std::exp(-double(r.x[i]))) * double(r.added[i]);
  }
}

/// Neighbours are rotated by "cosines" and "sines" that are the same values.
inline void wanted_rope(const RowTensors& r, int t, std::vector<double>& y) {
  constexpr std::size_t pairs = RowTensors::D / 2;
  for (std::size_t c = 0; c < y.size(); c += 2) {
    const std::size_t i = std::size_t(t) * y.size() + c;
    const double a = double(r.x[i]), b = double(r.x[i + 1]);
    const double turn = double(r.turns[std::size_t(t) * pairs + c / 2 % pairs]);
    y[c] = (a - b) * turn, y[c + 1] = (a + b) * turn;
  }
}

/// What is timed. RoPE and the sums change x, which row_kernel_error puts back.
inline std::vector<RowKernel> row_kernels_of(RowTensors& r) {
  const int T = r.T, C = r.C;
  float *x = r.on_x.data(), *added = r.on_added.data(), *gain = r.on_gain.data();
  float *bias = r.on_bias.data(), *turns = r.on_turns.data(), *y = r.y.data();
  const auto norm = [=] { launch_rms_norm(x, gain, RowTensors::eps, T, C, y); };
  const auto rms = [&r](bool with_added) {
    return [&r, with_added](int t, std::vector<double>& want) {
      wanted_rms_norm(r, t, with_added, want);
    };
  };
  const auto of = [&r](void (*row)(const RowTensors&, int, std::vector<double>&)) {
    return [&r, row](int t, std::vector<double>& want) { row(r, t, want); };
  };
  return {
      {"RMSNorm", 2, norm, &r.y, rms(false)},
      {"LayerNorm", 2, [=] { launch_layer_norm(x, gain, bias, RowTensors::eps, T, C, y); }, &r.y,
       of(wanted_layer_norm)},
      {"softmax", 2, [=] { launch_softmax(x, T, C, y); }, &r.y, of(wanted_softmax)},
      {"SwiGLU", 3, [=] { launch_swiglu(x, added, T, C, y); }, &r.y, of(wanted_swiglu)},
      {"RoPE", 2,
       [=] {
         launch_rope(turns, turns, T, 0, T, C / RowTensors::D, RowTensors::D, RopePairs::neighbours,
                     x);
       },
       &r.on_x, of(wanted_rope)},
      {"sum, then RMSNorm", 5, [=] { launch_add_rows(added, T, C, x), norm(); }, &r.y, rms(true)},
      {"sum and RMSNorm", 4, [=] { launch_add_rms_norm(added, gain, RowTensors::eps, T, C, x, y); },
       &r.y, rms(true)},
  };
}

/// The largest error of some rows after one call, as a multiple of 2^-14 of the row's largest
/// element. Infinite for NaN. x is uploaded again before the call and after it.
inline double row_kernel_error(RowTensors& r, const RowKernel& kernel) {
  r.on_x.upload(r.x);
  r.y.upload(std::vector<float>(r.y.size(), std::numeric_limits<float>::quiet_NaN()));
  kernel.work();
  const std::vector<float> got = kernel.result->download();
  r.on_x.upload(r.x);
  std::vector<double> want(std::size_t(r.C), 0);
  double worst = 0;
  for (int t = 0; t < r.T; t += t < r.T - 1 ? std::max(1, std::min(r.T - 1 - t, r.T / 16)) : 1) {
    kernel.wanted(t, want);
    double largest = 0, error = 0;
    for (std::size_t c = 0; c < want.size(); ++c) {
      const double apart = std::abs(double(got[std::size_t(t) * want.size() + c]) - want[c]);
      if (std::isnan(apart)) return std::numeric_limits<double>::infinity();
      largest = std::max(largest, std::abs(want[c])), error = std::max(error, apart);
    }
    worst = std::max(worst, error / (0x1p-14 * largest));
  }
  return worst;
}

}  // namespace t2t
