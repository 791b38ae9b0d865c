// An attention problem for a kernel: random rows in device memory, NaN in every gap between them,
// and what float64 makes of the same numbers, with a bound on the error of each.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "04_causal_attention/kernels/attention_call.hpp"
#include "cuda/device.hpp"
#include "cuda/half_types.hpp"
#include "random.hpp"

namespace t2t {

struct AttentionSizes {
  int B, T, S, H, G, D;
  bool causal = false;
  int start = 0;
  float deviation = 1;  // of the queries: larger ones make higher scores
  bool fading = false;  // key s is divided by 1 + s / 16: scores of later tiles are ever lower
};

/// tight: [B, T, heads, D]. gaps: room after each head, token and batch. fused: q, k and v side by
/// side in rows of one buffer [B, T, (H + 2·G)·D]; T and S must be equal.
enum class Layout { tight, gaps, fused };

inline void put(float& number, float value) { number = value; }
inline void put(bf16& number, float value) { number = __float2bfloat16(value); }
inline double read(float number) { return number; }
inline double read(bf16 number) { return __bfloat162float(number); }

/// Rows of one tensor on the host and where they lie: all bytes 0xff, a NaN, where no row is.
template <class Number>
struct Rows {
  Strides strides;
  std::vector<Number> numbers;
  std::size_t first = 0;  // of the tensor's first row
  Number* row(int b, int t, int h) {
    return numbers.data() + first + b * strides.batch + t * strides.token + h * strides.head;
  }
  static Rows with_room(int B, int tokens, int heads, int D, bool gaps) {
    const long head = gaps ? D + 8 : D, token = heads * head + (gaps ? 16 : 0);
    Rows rows{{(tokens + (gaps ? 3 : 0)) * token, token, head}, {}};
    rows.numbers.resize(std::size_t(B * rows.strides.batch));
    std::memset(static_cast<void*>(rows.numbers.data()), 0xff,
                rows.numbers.size() * sizeof(Number));
    return rows;
  }
};

template <class Number>
class AttentionProblem {
 public:
  AttentionProblem(const AttentionSizes& n, Layout layout, std::uint64_t seed)
      : n_(n), random_(seed) {
    const bool gaps = layout == Layout::gaps;
    out_ = Rows<Number>::with_room(n.B, n.T, n.H, n.D, gaps);
    q_ = layout == Layout::fused ? Rows<Number>::with_room(n.B, n.T, n.H + 2 * n.G, n.D, false)
                                 : Rows<Number>::with_room(n.B, n.T, n.H, n.D, gaps);
    k_ = v_ = Rows<Number>::with_room(n.B, n.S, n.G, n.D, gaps);
    if (layout == Layout::fused) k_.strides = v_.strides = q_.strides;
    if (layout == Layout::fused) k_.first = std::size_t(n.H * n.D), v_.first = k_.first + n.G * n.D;
    if (layout == Layout::fused) k_.numbers = v_.numbers = q_.numbers;
    draw(q_, n.T, n.H, n.deviation, false);
    draw(k_, n.S, n.G, 1, n.fading);
    draw(v_, n.S, n.G, 1, false);
    device_q_.upload(q_), device_k_.upload(k_), device_v_.upload(v_), device_out_.upload(out_);
    // One buffer has all three: what each has drawn is put together on the way.
    if (layout == Layout::fused) fuse();
  }

  /// For a kernel, which finds NaN wherever it is to write.
  AttentionCall<Number> call() {
    device_out_.upload(out_);
    return {device_q_.at(q_),
            device_k_.at(k_),
            device_v_.at(v_),
            device_out_.at(out_),
            q_.strides,
            k_.strides,
            v_.strides,
            out_.strides,
            n_.B,
            n_.T,
            n_.S,
            n_.H,
            n_.G,
            n_.D,
            n_.causal,
            n_.start};
  }

  /// What lies in the memory of out, gaps included.
  std::vector<Number> written() const { return device_out_.buffer[0].download(); }

  /// The largest error of what the kernel has written as a share of its bound; infinite when a
  /// number is NaN, or when anything was written where no row is.
  double worst_error();

 private:
  struct OnDevice {
    std::vector<DeviceBuffer<Number>> buffer;  // one, once it is there
    void upload(const Rows<Number>& rows) {
      buffer.clear();
      buffer.emplace_back(std::span<const Number>(rows.numbers));
    }
    Number* at(const Rows<Number>& rows) { return buffer[0].data() + rows.first; }
  };

  void draw(Rows<Number>& rows, int tokens, int heads, float deviation, bool fading) {
    for (int b = 0; b < n_.B; ++b)
      for (int t = 0; t < tokens; ++t)
        for (int h = 0; h < heads; ++h)
          for (int d = 0; d < n_.D; ++d)
            put(rows.row(b, t, h)[d],
                deviation * float(random_.next_normal()) / (fading ? 1 + float(t) / 16 : 1));
  }
  void fuse() {
    Rows<Number> all = q_;
    for (int b = 0; b < n_.B; ++b)
      for (int t = 0; t < n_.T; ++t) {
        std::copy_n(k_.row(b, t, 0), n_.G * n_.D, all.row(b, t, n_.H));
        std::copy_n(v_.row(b, t, 0), n_.G * n_.D, all.row(b, t, n_.H + n_.G));
      }
    device_q_.upload(all), device_k_.upload(all), device_v_.upload(all);
  }
  /// One element of out, in float64.
  struct Expected {
    double mean, bound;
  };
  std::vector<Expected> expect_row(int b, int t, int h);
  void expect_rows();

  AttentionSizes n_;
  Random random_;
  Rows<Number> q_, k_, v_, out_;
  OnDevice device_q_, device_k_, device_v_, device_out_;
  std::vector<Expected> expected_;  // [B, T, H, D], once anything was asked for
};

// Roundings of float32, u = 2^-24 each, go up as often as down, so those of a sum of n terms come
// to about √n / 2 of them, relative to the partial sums. A score is a sum of D products whose
// partial sums are some twice `walk`, the root of the sum of their squares; it is then scaled, and
// the highest is taken away: a rounding each of a number up to `top`. exp and the division add a
// few units. All that moves weights and their sum relative to themselves, out by as much of `size`
// = Σ weights·|v|; sums over S keys, with a rescaling at most every 16, another √S / 2.
//
// In bf16 kernels each weight is rounded before it meets its value, and out at last: 2^-8 of
// Σ weights·|v| and 2^-8 of |out| at most.
template <class Number>
auto AttentionProblem<Number>::expect_row(int b, int t, int h) -> std::vector<Expected> {
  const int seen = n_.causal ? std::min(n_.S, n_.start + t + 1) : n_.S, g = h / (n_.H / n_.G);
  const double scale = 1 / std::sqrt(double(n_.D));
  std::vector<double> weights(seen), mean(n_.D), size(n_.D);
  double highest = -std::numeric_limits<double>::infinity(), sum = 0, walk = 0, top = 0;
  for (int s = 0; s < seen; ++s) {
    double score = 0, squares = 0;
    for (int d = 0; d < n_.D; ++d) {
      const double product = read(q_.row(b, t, h)[d]) * read(k_.row(b, s, g)[d]);
      score += product, squares += product * product;
    }
    weights[s] = score * scale;
    walk = std::max(walk, std::sqrt(squares) * scale);
    top = std::max(top, std::abs(weights[s]));
    highest = std::max(highest, weights[s]);
  }
  for (double& weight : weights) sum += weight = std::exp(weight - highest);
  for (int s = 0; s < seen; ++s)
    for (int d = 0; d < n_.D; ++d) {
      mean[d] += weights[s] / sum * read(v_.row(b, s, g)[d]);
      size[d] += weights[s] / sum * std::abs(read(v_.row(b, s, g)[d]));
    }

  const double in_float =
      2 * 0x1p-24 * (std::sqrt(double(n_.D)) * walk + 2 * top + 8 + std::sqrt(double(seen)));
  const double in_bf16 = sizeof(Number) == 2 ? 0x1p-8 : 0;
  std::vector<Expected> expected(n_.D);
  for (int d = 0; d < n_.D; ++d)
    expected[d] = {mean[d], (in_float + in_bf16) * size[d] + in_bf16 * std::abs(mean[d])};
  return expected;
}

template <class Number>
void AttentionProblem<Number>::expect_rows() {
  if (!expected_.empty()) return;
  for (int b = 0; b < n_.B; ++b)
    for (int t = 0; t < n_.T; ++t)
      for (int h = 0; h < n_.H; ++h)
        for (const Expected& one : expect_row(b, t, h)) expected_.push_back(one);
}

template <class Number>
double AttentionProblem<Number>::worst_error() {
  synchronize();
  expect_rows();
  Rows<Number> got = out_;
  got.numbers = written();
  double worst = 0;
  const Expected* wanted = expected_.data();
  for (int b = 0; b < n_.B; ++b)
    for (int t = 0; t < n_.T; ++t)
      for (int h = 0; h < n_.H; ++h)
        for (int d = 0; d < n_.D; ++d, ++wanted) {
          const double error = std::abs(read(got.row(b, t, h)[d]) - wanted->mean) / wanted->bound;
          worst = error <= worst ? worst : std::isnan(error) ? 1.0 / 0.0 : error;
        }
  // Every number that is not NaN must be one of a row's.
  const auto numbers = std::count_if(got.numbers.begin(), got.numbers.end(),
                                     [](Number x) { return !std::isnan(read(x)); });
  return numbers == long(n_.B) * n_.T * n_.H * n_.D ? worst : 1.0 / 0.0;
}

}  // namespace t2t
