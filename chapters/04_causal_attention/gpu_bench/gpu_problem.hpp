// Attention's tensors for the benches on a GPU, of this chapter and of later ones: on the device
// and on the host, with the error of a result.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "04_causal_attention/kernels/attention_call.hpp"
#include "cuda/device.hpp"
#include "cuda/half_types.hpp"
#include "random.hpp"

namespace t2t {

inline float to_float(float x) { return x; }
inline float to_float(bf16 x) { return __bfloat162float(x); }
inline void from_float(float& to, float x) { to = x; }
inline void from_float(bf16& to, float x) { to = __float2bfloat16(x); }

/// Normal random numbers. A million are drawn and then repeated, since drawing all of them takes
/// long.
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

/// One row of out: query t of head h in sequence b.
struct Query {
  int b, t, h;
};

/// 64 queries, which lie all over the batch.
template <class Number>
std::vector<Query> sampled_queries(const Tensors<Number>& x) {
  std::vector<Query> queries;
  for (int i = 0; i < 64; ++i) {
    const unsigned hash = unsigned(i) * 2654435761u;
    const int t = i == 0 ? 0 : i == 1 ? x.T - 1 : int(hash % unsigned(x.T));
    queries.push_back({int(hash / 7 % unsigned(x.B)), t, int(hash / 13 % unsigned(x.H))});
  }
  return queries;
}

/// The larger of two errors; infinite when the second is NaN.
inline double worse(double worst, double error) {
  return error <= worst      ? worst
         : std::isnan(error) ? std::numeric_limits<double>::infinity()
                             : error;
}

/// Where row [D] of a token and a head begins in a sequence of a tensor.
inline std::size_t row_begins(const Strides& s, int text, int token, int head) {
  return std::size_t(text * s.batch + token * s.token + head * s.head);
}

/// One query's scores in float64 with the keys that it sees, and Σ |q·k| / √D of each.
struct ExactScores {
  std::vector<double> scores, sizes;
};

template <class Number>
ExactScores exact_scores(const Tensors<Number>& x, const AttentionCall<Number>& call,
                         const Query& at) {
  const std::size_t seen = std::size_t(keys_seen(call, at.t));
  const Number* query = &x.q[row_begins(call.q_strides, at.b, at.t, at.h)];
  ExactScores exact{std::vector<double>(seen, 0), std::vector<double>(seen, 0)};
  for (std::size_t s = 0; s < seen; ++s) {
    const Number* key = &x.k[row_begins(call.k_strides, at.b, int(s), at.h / (x.H / x.G))];
    double &score = exact.scores[s], &size = exact.sizes[s];
    for (int d = 0; d < x.D; ++d) {
      const double part = double(to_float(query[d])) * double(to_float(key[d]));
      score += part, size += std::abs(part);
    }
    score /= std::sqrt(double(x.D)), size /= std::sqrt(double(x.D));
  }
  return exact;
}

inline std::vector<double> exact_softmax(std::vector<double> row) {
  const double highest = *std::ranges::max_element(row);
  double sum = 0;
  for (double& x : row) sum += x = std::exp(x - highest);
  for (double& x : row) x /= sum;
  return row;
}

/// The largest error in one row of out, as a multiple of its bound: for bf16 what the roundings of
/// the weights and of out can come to, for float32 1/128 of that. Infinite for NaN.
template <class Number>
double row_error(const Tensors<Number>& x, const AttentionCall<Number>& call,
                 const std::vector<Number>& out, const Query& at) {
  const double rounding = sizeof(Number) == 2 ? 0x1p-7 : 0x1p-14;
  const std::size_t D = std::size_t(x.D);
  const std::vector<double> weights = exact_softmax(exact_scores(x, call, at).scores);
  std::vector<double> mean(D, 0), size = mean;
  for (std::size_t s = 0; s < weights.size(); ++s) {
    const Number* value = &x.v[row_begins(call.v_strides, at.b, int(s), at.h / (x.H / x.G))];
    for (std::size_t d = 0; d < D; ++d) {
      const double part = weights[s] * double(to_float(value[d]));
      mean[d] += part, size[d] += std::abs(part);
    }
  }
  const Number* got = &out[row_begins(call.out_strides, at.b, at.t, at.h)];
  double worst = 0;
  for (std::size_t d = 0; d < D; ++d)
    worst = worse(worst, std::abs(double(to_float(got[d])) - mean[d]) / (rounding * size[d]));
  return worst;
}

/// The same for the sampled queries.
template <class Number>
double worst_error(Tensors<Number>& x) {
  synchronize();
  const std::vector<Number> out = x.out.download();
  const AttentionCall<Number> call = x.call();
  const std::vector<Query> queries = sampled_queries(x);
  double worst = 0;
#pragma omp parallel for reduction(max : worst)
  for (std::size_t i = 0; i < queries.size(); ++i)
    worst = std::max(worst, row_error(x, call, out, queries[i]));
  return worst;
}

}  // namespace t2t
