// Attention's tensors for gpu_bench.cpp, on the device and on the host, and the error of a result.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "11_flash_attention/kernels/kernels.hpp"
#include "cuda/device.hpp"
#include "random.hpp"

namespace t2t {

inline float to_float(float x) { return x; }
inline float to_float(bf16 x) { return __bfloat162float(x); }
inline void from_float(float& to, float x) { to = x; }
inline void from_float(bf16& to, float x) { to = __float2bfloat16(x); }

/// Normal numbers. A million are drawn and then repeated, since drawing all of them takes long.
template <class Number>
std::vector<Number> draw(std::size_t count, std::uint64_t seed) {
  Random random(seed);
  std::vector<Number> numbers(count);
  const std::size_t period = std::min<std::size_t>(count, 1000003);
  for (std::size_t i = 0; i < period; ++i) from_float(numbers[i], float(random.next_normal()));
  for (std::size_t i = period; i < count; ++i) numbers[i] = numbers[i - period];
  return numbers;
}

/// [B, T, H, D] without gaps; heads_first: [B, H, T, D].
inline Strides strides_of(int T, int heads, int D, bool heads_first) {
  const long text = long(T) * heads * D;
  return heads_first ? Strides{text, D, long(T) * D} : row_major(T, heads, D);
}

template <class Number>
struct Tensors {
  int B, T, S, H, G, D;
  bool causal, heads_first = false;
  std::vector<Number> q = draw<Number>(std::size_t(B) * T * H * D, 1);
  std::vector<Number> k = draw<Number>(std::size_t(B) * S * G * D, 2);
  std::vector<Number> v = draw<Number>(std::size_t(B) * S * G * D, 3);
  DeviceBuffer<Number> on_q{std::span<const Number>(q)}, on_k{std::span<const Number>(k)};
  DeviceBuffer<Number> on_v{std::span<const Number>(v)}, out{q.size()};

  /// Fills out with NaN, so that a kernel which writes nothing is noticed.
  void forget_out() {
    Number none;
    from_float(none, std::numeric_limits<float>::quiet_NaN());
    out.upload(std::vector<Number>(out.size(), none));
  }

  AttentionCall<Number> call() {
    const Strides queries = strides_of(T, H, D, heads_first);
    const Strides keys = strides_of(S, G, D, heads_first);
    return {on_q.data(), on_k.data(), on_v.data(), out.data(), queries, keys, keys,   queries,
            B,           T,           S,           H,          G,       D,    causal, S - T};
  }
};

/// The largest error in one row of out, as a multiple of its bound: for bf16 what the roundings of
/// the weights and of out can come to, for float32 1/128 of that. Infinite for NaN.
template <class Number>
double row_error(const Tensors<Number>& x, const AttentionCall<Number>& call,
                 const std::vector<Number>& out, int b, int t, int h) {
  const double rounding = sizeof(Number) == 2 ? 0x1p-7 : 0x1p-14;
  const int g = h / (x.H / x.G), seen = keys_seen(call, t), D = x.D;
  const auto at = [](const Strides& s, int text, int token, int head) {
    return std::size_t(text * s.batch + token * s.token + head * s.head);
  };
  const Number* query = &x.q[at(call.q_strides, b, t, h)];
  std::vector<double> weights(std::size_t(seen), 0), mean(std::size_t(D), 0), size = mean;
  double highest = -std::numeric_limits<double>::infinity(), sum = 0, worst = 0;
  for (int s = 0; s < seen; ++s) {
    const Number* key = &x.k[at(call.k_strides, b, s, g)];
    double& weight = weights[std::size_t(s)];
    for (int d = 0; d < D; ++d) weight += double(to_float(query[d])) * double(to_float(key[d]));
    weight /= std::sqrt(double(D));
    highest = std::max(highest, weight);
  }
  for (double& weight : weights) sum += weight = std::exp(weight - highest);
  for (int s = 0; s < seen; ++s) {
    const Number* value = &x.v[at(call.v_strides, b, s, g)];
    for (std::size_t d = 0; d < std::size_t(D); ++d) {
      const double part = weights[std::size_t(s)] / sum * double(to_float(value[d]));
      mean[d] += part, size[d] += std::abs(part);
    }
  }
  const Number* got = &out[at(call.out_strides, b, t, h)];
  for (std::size_t d = 0; d < std::size_t(D); ++d) {
    const double error = std::abs(double(to_float(got[d])) - mean[d]) / (rounding * size[d]);
    worst = error <= worst ? worst : std::isnan(error) ? 1.0 / 0.0 : error;
  }
  return worst;
}

/// The same for 64 rows, which lie all over the batch.
template <class Number>
double worst_error(Tensors<Number>& x) {
  synchronize();
  const std::vector<Number> out = x.out.download();
  const AttentionCall<Number> call = x.call();
  double worst = 0;
#pragma omp parallel for reduction(max : worst)
  for (int i = 0; i < 64; ++i) {
    const unsigned hash = unsigned(i) * 2654435761u;
    const int t = i == 0 ? 0 : i == 1 ? x.T - 1 : int(hash % unsigned(x.T));
    const int b = int(hash / 7 % unsigned(x.B)), h = int(hash / 13 % unsigned(x.H));
    worst = std::max(worst, row_error(x, call, out, b, t, h));
  }
  return worst;
}

}  // namespace t2t
