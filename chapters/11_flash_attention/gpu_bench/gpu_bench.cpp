// Times the ladder on a GPU. Each result is first checked against float64, then timed and compared
// with what the card does at most, which is measured again for each group. B·T is 16384 and H·D is
// 2048 throughout.
//
//   11_flash_attention_gpu_bench [--json FILE]
//
// With a causal mask half of the FLOPs are counted. FILE gets one JSON object a line, each written
// as soon as it is known. What the card has no memory for is left out, with a line that says so.
// Without a GPU it prints a line and exits with 3.
#include <fmt/format.h>

#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>

#include "04_causal_attention/attention_naive.hpp"
#include "11_flash_attention/gpu_bench/gpu_baselines.hpp"
#include "11_flash_attention/gpu_bench/gpu_problem.hpp"
#include "11_flash_attention/gpu_bench/gpu_timing.hpp"
#include "11_flash_attention/kernels/gpu_rows.hpp"
#include "cuda/device.hpp"

using namespace t2t;

namespace {

constexpr int tokens = 16384, width = 2048;

/// Prints results, and writes each to the file at once.
class Report {
 public:
  explicit Report(const std::string& file) {
    if (file.empty()) return;
    lines_.open(file);
    if (!lines_) throw std::runtime_error("cannot write " + file);
  }

  /// What the card does at most, now that it is warm.
  void limits(const std::string& group) {
    copy_ = copy_speed(), read_ = read_speed(), mma_ = mma_peak();
    matrix_ = has_cublas() ? matrix_peak() : 0, float_ = has_cublas() ? float_matrix_peak() : 0;
    fmt::print(
        "{}: copy {:.0f} GB/s, read {:.0f} GB/s; TFLOP/s of mma.sync {:.0f}, of matrix "
        "products {}\n",
        group, copy_ / 1e9, read_ / 1e9, mma_ / 1e12,
        has_cublas() ? fmt::format("bf16 {:.0f}, float32 {:.0f}", matrix_ / 1e12, float_ / 1e12)
                     : "not measured (no cuBLAS)");
    write(
        fmt::format(R"("kind": "limits", "group": "{}", "copy_gb_s": {:.1f}, "read_gb_s": {:.1f}, )"
                    R"("mma_tflops": {:.1f}, "matrix_tflops": {:.1f}, "float_tflops": {:.1f})",
                    group, copy_ / 1e9, read_ / 1e9, mma_ / 1e12, matrix_ / 1e12, float_ / 1e12));
  }

  /// Checks, times and prints one rung.
  template <class Number>
  void attention(const char* rung, Tensors<Number>& x, const std::function<void()>& work) {
    const double error = checked(rung, x, work);
    const Times times = time_calls(work);
    const double all = 4.0 * x.B * x.H * x.D * double(x.T) * x.S;
    const double speed = (x.causal ? all / 2 : all) / (times.median / 1000);
    const bool is_float = sizeof(Number) == 4;
    const double limit = is_float ? float_ : mma_;
    fmt::print("  {:16} T={:<6} {:8.3f} ms {:8.1f} TFLOP/s{}\n", rung, x.T, times.median,
               speed / 1e12,
               limit > 0 ? fmt::format(" {:5.1f} % of {}", 100 * speed / limit,
                                       is_float ? "the float32 product" : "mma.sync")
                         : "");
    write(fmt::format(R"("kind": "attention", "rung": "{}", "D": {}, "T": {}, "causal": {}, {}, )"
                      R"("tflops": {:.2f}, "error": {:.3f})",
                      rung, x.D, x.T, x.causal, json(times), speed / 1e12, error));
  }

  void decode(Tensors<bf16>& x, const std::function<void()>& work) {
    const double error = checked("5 decode", x, work);
    const Times times = time_calls(work, flush_l2);
    const double speed = 2.0 * sizeof(bf16) * double(x.k.size()) / (times.median / 1000);
    fmt::print("  B={:<3} S={:<6} {:9.1f} us {:8.0f} GB/s {:5.1f} % of a read\n", x.B, x.S,
               1000 * times.median, speed / 1e9, 100 * speed / read_);
    write(fmt::format(R"("kind": "decode", "B": {}, "S": {}, {}, "gb_s": {:.1f}, "error": {:.3f})",
                      x.B, x.S, json(times), speed / 1e9, error));
  }

  /// Checks, times and prints one row kernel. copy: the speed of a copy of as many bytes.
  void row_kernel(RowTensors& x, const RowKernel& kernel, double copy) {
    const double error = row_kernel_error(x, kernel);
    if (!(error <= 1))
      throw std::runtime_error(
          fmt::format("{}: the error is {} times its bound, wanted at most 1", kernel.name, error));
    const Times times = time_calls(kernel.work, flush_l2);
    const double bytes = double(kernel.tensors) * sizeof(float) * double(x.x.size());
    const double speed = bytes / (times.median / 1000);
    fmt::print("  {:18} {:8.1f} MB {:9.1f} us {:8.0f} GB/s {:5.1f} % of a copy\n", kernel.name,
               bytes / 1e6, 1000 * times.median, speed / 1e9, 100 * speed / copy);
    write(fmt::format(R"("kind": "rows", "kernel": "{}", "T": {}, "C": {}, "bytes": {:.0f}, {}, )"
                      R"("gb_s": {:.1f}, "copy_gb_s": {:.1f}, "error": {:.3f})",
                      kernel.name, x.T, x.C, bytes, json(times), speed / 1e9, copy / 1e9, error));
  }

  /// Whether there is memory for something; if not, says that it is left out.
  bool has_room(const char* rung, int T, double bytes) {
    const double free = double(free_memory());
    if (bytes < 0.9 * free) return true;
    fmt::print("  {:16} T={:<6} left out: wanted {:.1f} GB of memory, {:.1f} are free\n", rung, T,
               bytes / 1e9, free / 1e9);
    write(fmt::format(R"("kind": "left out", "rung": "{}", "T": {}, "wanted_gb": {:.1f}, )"
                      R"("free_gb": {:.1f})",
                      rung, T, bytes / 1e9, free / 1e9));
    return false;
  }

 private:
  template <class Number>
  static double checked(const char* rung, Tensors<Number>& x, const std::function<void()>& work) {
    work();
    const double error = worst_error(x);
    if (!(error <= 1))
      throw std::runtime_error(
          fmt::format("{}, D = {}, T = {}{}: the error is {} times its bound, "
                      "wanted at most 1",
                      rung, x.D, x.T, x.causal ? ", causal" : "", error));
    return error;
  }
  static std::string json(const Times& times) {
    return fmt::format(R"("least_ms": {:.5f}, "ms": {:.5f}, "p90_ms": {:.5f})", times.least,
                       times.median, times.p90);
  }
  void write(const std::string& fields) {
    std::fflush(stdout);
    if (lines_.is_open() && !(lines_ << '{' << fields << "}\n").flush())
      throw std::runtime_error("cannot write the results");
  }

  std::ofstream lines_;
  double copy_ = 0, read_ = 0, mma_ = 0, matrix_ = 0, float_ = 0;  // bytes or FLOP a second
};

void run_float(Report& report, int D, int T, bool causal) {
  const int H = width / D, B = tokens / T;
  const double all = 7.0 * tokens * width * sizeof(float);
  if (!report.has_room("1 fused", T, all)) return;
  Tensors<float> x{B, T, T, H, H, D, causal};
  const AttentionCall<float> call = x.call();
  if (report.has_room("0 naive", T, double(naive_scores(call)) * sizeof(float))) {
    DeviceBuffer<float> scores(naive_scores(call));
    report.attention("0 naive", x, [&] { attend_naive(call, scores.data()); });
  }
  report.attention("1 fused", x, [&] { attend_fused(call); });
  report.attention("2 shared tiles", x, [&] { attend_shared_tiles(call); });
}

void run_cublas(Report& report, int D, int T) {
  const int H = width / D, B = tokens / T;
  const std::size_t count = std::size_t(B) * H * T * T;
  if (!report.has_room("cuBLAS, 3 steps", T, double(count) * (sizeof(float) + sizeof(bf16))))
    return;
  Tensors<bf16> x{B, T, T, H, H, D, false, true};
  DeviceBuffer<float> scores(count);
  DeviceBuffer<bf16> weights(count);
  const AttentionCall<bf16> call = x.call();
  report.attention("cuBLAS, 3 steps", x,
                   [&] { attend_cublas(call, scores.data(), weights.data()); });
}

void run_attention(Report& report, int D, bool causal) {
  const int H = width / D;
  report.limits(fmt::format("D={} {}", D, causal ? "causal" : "full"));
  for (const int T : {512, 1024, 2048, 4096, 8192, 16384}) {
    if (T <= 2048) run_float(report, D, T, causal);
    if (T <= 4096 && !causal && has_cublas()) run_cublas(report, D, T);
    Tensors<bf16> x{tokens / T, T, T, H, H, D, causal};
    const AttentionCall<bf16> call = x.call();
    report.attention("3 tensor cores", x, [&] { attend_tensor_cores(call); });
    report.attention("4 swizzle, async", x, [&] { attend_swizzle_async(call); });
  }
}

void run_decode(Report& report) {
  report.limits("decode, D=128, 32 query heads in 4 groups, L2 emptied before each call");
  for (const int B : {1, 8, 64})
    for (const int S : {1024, 4096, 16384, 65536}) {
      if (long(B) * S > (1L << 20)) continue;
      if (!report.has_room("5 decode", S, 4.0 * B * S * 4 * 128 * sizeof(bf16))) continue;
      Tensors<bf16> x{B, 1, S, 32, 4, 128, false};
      const AttentionCall<bf16> call = x.call();
      const int splits = decode_splits(B * x.G, S, decode_blocks(x.D) * multiprocessors());
      DeviceBuffer<float> scratch(decode_scratch(call, splits));
      report.decode(x, [&] { attend_decode(call, splits, scratch.data()); });
    }
}

/// The last two kernels compute the same: one of them asks for a fifth fewer bytes.
void run_rows(Report& report) {
  report.limits("rows, L2 emptied before each call");
  for (const int T : {2048, 131072}) {
    const int C = 576;
    if (!report.has_room("row kernels", T, 4.0 * T * C * sizeof(float))) continue;
    const double copy = copy_speed(std::size_t(T) * C * sizeof(float), true);
    fmt::print("  T={}, C={}: a copy of as many bytes {:.0f} GB/s\n", T, C, copy / 1e9);
    RowTensors x{T, C};
    for (const RowKernel& kernel : row_kernels_of(x)) report.row_kernel(x, kernel, copy);
  }
}

}  // namespace

int main(int argc, char** argv) try {
  const bool to_file = argc == 3 && std::string_view(argv[1]) == "--json";
  if (argc != 1 && !to_file)
    throw std::runtime_error("usage: 11_flash_attention_gpu_bench [--json FILE]");
  if (!has_gpu()) {
    fmt::print("no GPU found: nothing was measured\n");
    return 3;
  }
  fmt::print("{}\n", device_name());
  Report report(to_file ? argv[2] : "");
  for (const bool causal : {false, true})
    for (const int D : {64, 128}) run_attention(report, D, causal);
  run_decode(report);
  run_rows(report);
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}
