// Times the ladder on a GPU. Each rung is first checked against float64, then timed and compared
// with the card's speed in a matrix product and a copy. B·T is 16384 and H·D is 2048 throughout.
//
//   11_flash_attention_gpu_bench [--json FILE]
//
// With a causal mask half of the FLOPs are counted. Without a GPU it prints a line and exits with
// 0.
#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <stdexcept>
#include <string_view>

#include "04_causal_attention/attention_naive.hpp"
#include "11_flash_attention/gpu_baselines.hpp"
#include "cuda/device.hpp"
#include "random.hpp"

using namespace t2t;

namespace {

constexpr int tokens = 16384, width = 2048;

float read(float x) { return x; }
float read(bf16 x) { return __bfloat162float(x); }
void put(float& to, float x) { to = x; }
void put(bf16& to, float x) { to = __float2bfloat16(x); }

/// Normal numbers. A million are drawn and then repeated, since drawing all of them takes long.
template <class Number>
std::vector<Number> draw(std::size_t count, std::uint64_t seed) {
  Random random(seed);
  std::vector<Number> numbers(count);
  const std::size_t period = std::min<std::size_t>(count, 1000003);
  for (std::size_t i = 0; i < period; ++i) put(numbers[i], float(random.next_normal()));
  for (std::size_t i = period; i < count; ++i) numbers[i] = numbers[i - period];
  return numbers;
}

template <class Number>
struct Tensors {
  int B, T, S, H, G, D;
  std::vector<Number> q = draw<Number>(std::size_t(B) * T * H * D, 1);
  std::vector<Number> k = draw<Number>(std::size_t(B) * S * G * D, 2);
  std::vector<Number> v = draw<Number>(std::size_t(B) * S * G * D, 3);
  DeviceBuffer<Number> on_q{std::span<const Number>(q)}, on_k{std::span<const Number>(k)};
  DeviceBuffer<Number> on_v{std::span<const Number>(v)}, out{q.size()};

  AttentionCall<Number> call(bool causal) {
    const Strides queries = row_major(T, H, D), keys = row_major(S, G, D);
    return {on_q.data(), on_k.data(), on_v.data(), out.data(), queries, keys, keys,   queries,
            B,           T,           S,           H,          G,       D,    causal, S - T};
  }
};

/// The largest error in three rows of out, as a multiple of its bound: for bf16 what the roundings
/// of the weights and of out can come to, for float32 1/128 of that. Infinite for NaN.
template <class Number>
double worst_error(Tensors<Number>& x, bool causal) {
  synchronize();
  const std::vector<Number> out = x.out.download();
  const double rounding = sizeof(Number) == 2 ? 0x1p-7 : 0x1p-14;
  double worst = 0;
  for (const int t : {0, x.T / 3, x.T - 1}) {
    const int h = t % x.H, b = t % x.B, g = h / (x.H / x.G),
              seen = causal ? x.S - x.T + t + 1 : x.S;
    const auto at = [&](int s) { return ((std::size_t(b) * x.S + s) * x.G + g) * x.D; };
    const std::size_t query = ((std::size_t(b) * x.T + t) * x.H + h) * x.D;
    std::vector<double> weights(seen), mean(x.D), size(x.D);
    double highest = -std::numeric_limits<double>::infinity(), sum = 0;
    for (int s = 0; s < seen; ++s) {
      for (int d = 0; d < x.D; ++d)
        weights[s] += double(read(x.q[query + d])) * read(x.k[at(s) + d]) / std::sqrt(x.D);
      highest = std::max(highest, weights[s]);
    }
    for (double& weight : weights) sum += weight = std::exp(weight - highest);
    for (int s = 0; s < seen; ++s)
      for (int d = 0; d < x.D; ++d) {
        mean[d] += weights[s] / sum * read(x.v[at(s) + d]);
        size[d] += weights[s] / sum * std::abs(read(x.v[at(s) + d]));
      }
    for (int d = 0; d < x.D; ++d) {
      const double error = std::abs(read(out[query + d]) - mean[d]) / (rounding * size[d]);
      worst = error <= worst ? worst : std::isnan(error) ? 1.0 / 0.0 : error;
    }
  }
  return worst;
}

class Report {
 public:
  Report() : peak_(has_cublas() ? matrix_peak() : 0), copy_(copy_speed()) {
    fmt::print("{}: copy {:.0f} GB/s, bf16 matrix product {}\n", device_name(), copy_ / 1e9,
               has_cublas() ? fmt::format("{:.0f} TFLOP/s", peak_ / 1e12) : "not measured");
  }

  /// Checks, times and prints one rung.
  template <class Number>
  void attention(const char* rung, Tensors<Number>& x, bool causal,
                 const std::function<void()>& work) {
    work();
    expect_right(rung, worst_error(x, causal));
    const double ms = median_ms(work), all = 4.0 * x.B * x.H * x.D * double(x.T) * x.S;
    const double speed = (causal ? all / 2 : all) / (ms / 1000);
    fmt::print(
        "  {:16} T={:<6} {:8.3f} ms {:8.1f} TFLOP/s{}\n", rung, x.T, ms, speed / 1e12,
        peak_ > 0 ? fmt::format(" {:5.1f} % of the matrix product", 100 * speed / peak_) : "");
    attention_ += fmt::format(
        "{}\n  {{\"rung\": \"{}\", \"D\": {}, \"T\": {}, \"causal\": {}, \"ms\": {:.5f}, "
        "\"tflops\": {:.2f}}}",
        attention_.empty() ? "" : ",", rung, x.D, x.T, causal, ms, speed / 1e12);
  }

  void decode(Tensors<bf16>& x, const std::function<void()>& work) {
    work();
    expect_right("decode", worst_error(x, false));
    const double ms = median_ms(work, flush_l2);
    const double speed = 2.0 * sizeof(bf16) * x.k.size() / (ms / 1000);
    fmt::print("  B={:<3} S={:<6} {:9.1f} us {:8.0f} GB/s {:5.1f} % of a copy\n", x.B, x.S,
               1000 * ms, speed / 1e9, 100 * speed / copy_);
    decode_ += fmt::format("{}\n  {{\"B\": {}, \"S\": {}, \"us\": {:.3f}, \"gb_s\": {:.1f}}}",
                           decode_.empty() ? "" : ",", x.B, x.S, 1000 * ms, speed / 1e9);
  }

  std::string json() const {
    return fmt::format(
        "{{\"card\": \"{}\", \"copy_gb_s\": {:.1f}, \"matrix_tflops\": {:.1f},\n"
        "\"attention\": [{}],\n\"decode\": [{}]}}\n",
        device_name(), copy_ / 1e9, peak_ / 1e12, attention_, decode_);
  }

 private:
  static void expect_right(const char* rung, double error) {
    if (!(error <= 1))
      throw std::runtime_error(
          fmt::format("{}: the error is {} times its bound, wanted at most 1", rung, error));
  }

  double peak_, copy_;
  std::string attention_, decode_;
};

void run_attention(Report& report, int D, bool causal) {
  const int H = width / D;
  fmt::print("D={} {}\n", D, causal ? "causal" : "full");
  for (const int T : {512, 1024, 2048, 4096, 8192, 16384}) {
    const int B = tokens / T;
    if (T <= 2048) {
      Tensors<float> x{B, T, T, H, H, D};
      const AttentionCall<float> call = x.call(causal);
      DeviceBuffer<float> scores(naive_scores(call));
      report.attention("0 naive", x, causal, [&] { attend_naive(call, scores.data()); });
      report.attention("1 fused", x, causal, [&] { attend_fused(call); });
      report.attention("2 shared tiles", x, causal, [&] { attend_shared_tiles(call); });
    }
    Tensors<bf16> x{B, T, T, H, H, D};
    const AttentionCall<bf16> call = x.call(causal);
    if (!causal && T <= 4096 && has_cublas()) {
      const std::size_t count = std::size_t(B) * H * T * T;
      DeviceBuffer<float> scores(count);
      DeviceBuffer<bf16> weights(count);
      report.attention("cuBLAS, 3 steps", x, causal,
                       [&] { attend_cublas(call, scores.data(), weights.data()); });
    }
    report.attention("3 tensor cores", x, causal, [&] { attend_tensor_cores(call); });
    report.attention("4 swizzle, async", x, causal, [&] { attend_swizzle_async(call); });
  }
}

void run_decode(Report& report) {
  fmt::print(
      "5 decode, D=128, 32 query heads in 4 groups, L2 cache overwritten before each call\n");
  for (const int B : {1, 8, 64})
    for (const int S : {1024, 4096, 16384, 65536}) {
      if (long(B) * S > (1L << 20)) continue;
      Tensors<bf16> x{B, 1, S, 32, 4, 128};
      const AttentionCall<bf16> call = x.call(false);
      const int splits = decode_splits(B * x.G, S, multiprocessors());
      DeviceBuffer<float> scratch(decode_scratch(call, splits));
      report.decode(x, [&] { attend_decode(call, splits, scratch.data()); });
    }
}

}  // namespace

int main(int argc, char** argv) try {
  const bool to_file = argc == 3 && std::string_view(argv[1]) == "--json";
  if (argc != 1 && !to_file)
    throw std::runtime_error("usage: 11_flash_attention_gpu_bench [--json FILE]");
  if (!has_gpu()) {
    fmt::print("no GPU found: nothing was measured\n");
    return 0;
  }
  Report report;
  for (const bool causal : {false, true})
    for (const int D : {64, 128}) run_attention(report, D, causal);
  run_decode(report);
  if (to_file && !(std::ofstream(argv[2]) << report.json()).flush())
    throw std::runtime_error(fmt::format("cannot write {}", argv[2]));
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}
