// Times the ladder on a GPU. Each result is checked against float64 before and after it is timed,
// and compared with what the card does at most, which is measured again for each group. B·T is
// 16384 and H·D is 2048 throughout.
//
//   11_flash_attention_gpu_bench [--json FILE] [--only TEXT]
//
// With a causal mask half of the FLOPs are counted. FILE gets one JSON object per line, each
// written as soon as it is known. TEXT chooses the groups whose names contain it: "D=128 causal",
// "decode", "rows". What the card has no memory for is left out, with a line that says so. A wrong
// result is said and not timed, and the program ends with 1; without a GPU it ends with 3.
#include <fmt/format.h>

#include <functional>
#include <string>
#include <utility>

#include "04_causal_attention/gpu_bench/gpu_problem.hpp"
#include "04_causal_attention/kernels/attention_naive.hpp"
#include "11_flash_attention/gpu_bench/gpu_baselines.hpp"
#include "11_flash_attention/gpu_bench/gpu_rows.hpp"
#include "cuda/device.hpp"
#include "cuda/gpu_bench/gpu_report.hpp"

using namespace t2t;

namespace {

constexpr int tokens = 16384, width = 2048;

/// Times one rung, from an out that holds no number yet.
template <class Number>
void attention(Report& report, const char* rung, Tensors<Number>& x,
               const std::function<void()>& work) {
  x.forget_out();
  const auto times =
      report.timed(fmt::format("{}, D={}, T={}{}", rung, x.D, x.T, x.causal ? ", causal" : ""),
                   work, [&] { return worst_error(x); });
  if (!times) return;
  const double all = 4.0 * x.B * x.H * x.D * double(x.T) * x.S;
  const double speed = (x.causal ? all / 2 : all) / (times->median / 1000);
  const bool is_float = sizeof(Number) == 4;
  const double limit = is_float ? report.limits().floats : report.limits().mma;
  fmt::print("  {:16} T={:<6} {:8.3f} ms {:8.1f} TFLOP/s{}\n", rung, x.T, times->median,
             speed / 1e12,
             limit > 0 ? fmt::format(" {:5.1f} % of {}", 100 * speed / limit,
                                     is_float ? "the float32 product" : "mma.sync")
                       : "");
  report.write(fmt::format(
      R"("kind": "attention", "rung": "{}", "D": {}, "T": {}, "causal": {}, {}, "tflops": {:.2f})",
      rung, x.D, x.T, x.causal, json(*times), speed / 1e12));
}

void decode(Report& report, Tensors<bf16>& x, const std::function<void()>& work) {
  x.forget_out();
  const auto times = report.timed(
      fmt::format("5 decode, B={}, S={}", x.B, x.S), work, [&] { return worst_error(x); },
      flush_l2);
  if (!times) return;
  const double speed = 2.0 * sizeof(bf16) * double(x.k.size()) / (times->median / 1000);
  fmt::print("  B={:<3} S={:<6} {:9.1f} us {:8.0f} GB/s {:5.1f} % of a read\n", x.B, x.S,
             1000 * times->median, speed / 1e9, 100 * speed / report.limits().read);
  report.write(
      fmt::format(R"("kind": "decode", "rung": "5 decode", "B": {}, "S": {}, {}, "gb_s": {:.1f})",
                  x.B, x.S, json(*times), speed / 1e9));
}

/// copy: the speed of a copy of as many bytes.
void row_kernel(Report& report, RowTensors& x, const RowKernel& kernel, double copy) {
  const auto times = report.timed(
      kernel.name, kernel.work, [&] { return row_kernel_error(x, kernel); }, flush_l2);
  if (!times) return;
  const double bytes = double(kernel.tensors) * sizeof(float) * double(x.x.size());
  const double speed = bytes / (times->median / 1000);
  fmt::print("  {:18} {:8.1f} MB {:9.1f} us {:8.0f} GB/s {:5.1f} % of a copy\n", kernel.name,
             bytes / 1e6, 1000 * times->median, speed / 1e9, 100 * speed / copy);
  report.write(fmt::format(
      R"("kind": "rows", "kernel": "{}", "T": {}, "C": {}, "bytes": {:.0f}, {}, "gb_s": {:.1f}, )"
      R"("copy_gb_s": {:.1f})",
      kernel.name, x.T, x.C, bytes, json(*times), speed / 1e9, copy / 1e9));
}

void run_float(Report& report, int D, int T, bool causal) {
  const int H = width / D, B = tokens / T;
  const double all = 7.0 * tokens * width * sizeof(float);
  if (!report.has_room(fmt::format("1 fused, T={}", T), all)) return;
  Tensors<float> x{B, T, T, H, H, D, causal};
  const AttentionCall<float> call = x.call();
  if (report.has_room(fmt::format("0 naive, T={}", T),
                      double(naive_scores(call)) * sizeof(float))) {
    DeviceBuffer<float> scores(naive_scores(call));
    attention(report, "0 naive", x, [&] { attend_naive(call, scores.data()); });
  }
  attention(report, "1 fused", x, [&] { attend_fused(call); });
  attention(report, "2 shared tiles", x, [&] { attend_shared_tiles(call); });
}

void run_cublas(Report& report, int D, int T) {
  const int H = width / D, B = tokens / T;
  const std::size_t count = std::size_t(B) * H * T * T;
  const double bytes = double(count) * (sizeof(float) + sizeof(bf16));
  if (!report.has_room(fmt::format("cuBLAS, 3 steps, T={}", T), bytes)) return;
  Tensors<bf16> x{B, T, T, H, H, D, false, true};
  DeviceBuffer<float> scores(count);
  DeviceBuffer<bf16> weights(count);
  const AttentionCall<bf16> call = x.call();
  attention(report, "cuBLAS, 3 steps", x,
            [&] { attend_cublas(call, scores.data(), weights.data()); });
}

void run_attention(Report& report, int D, bool causal) {
  const int H = width / D;
  if (!report.begins(fmt::format("D={} {}", D, causal ? "causal" : "full"))) return;
  for (const int T : {512, 1024, 2048, 4096, 8192, 16384}) {
    if (T <= 2048) run_float(report, D, T, causal);
    if (T <= 4096 && !causal && has_cublas()) run_cublas(report, D, T);
    Tensors<bf16> x{tokens / T, T, T, H, H, D, causal};
    const AttentionCall<bf16> call = x.call();
    attention(report, "3 tensor cores", x, [&] { attend_tensor_cores(call); });
    attention(report, "4 swizzle, async", x, [&] { attend_swizzle_async(call); });
    if (compute_capability() >= 90)
      attention(report, "6 bulk copies", x, [&] { attend_bulk_copies(call); });
    if (compute_capability() == 90) {
      attention(report, "7 warpgroups", x, [&] { attend_warpgroup_products(call); });
      attention(report, "8 roles", x, [&] { attend_warp_specialized(call); });
      attention(report, "9 overlapped", x, [&] { attend_overlapped(call); });
      attention(report, "10 persistent", x, [&] { attend_persistent(call); });
    }
  }
}

void run_decode(Report& report) {
  if (!report.begins("decode, D=128, 32 query heads in 4 groups, L2 emptied before each call"))
    return;
  for (const int B : {1, 8, 64})
    for (const int S : {1024, 4096, 16384, 65536}) {
      if (long(B) * S > (1L << 20)) continue;
      if (!report.has_room(fmt::format("5 decode, B={}, S={}", B, S),
                           4.0 * B * S * 4 * 128 * sizeof(bf16)))
        continue;
      Tensors<bf16> x{B, 1, S, 32, 4, 128, false};
      const AttentionCall<bf16> call = x.call();
      const int splits = decode_splits(B * x.G, S, decode_blocks(x.D) * multiprocessors());
      DecodeScratch scratch(decode_scratch(call, splits));
      decode(report, x, [&] { attend_decode(call, splits, scratch); });
    }
}

/// The last two kernels compute the same: one of them asks for a fifth fewer bytes. Rows of 4096
/// take the registers of four warps.
void run_rows(Report& report) {
  if (!report.begins("rows, L2 emptied before each call")) return;
  for (const auto& [T, C] : {std::pair{2048, 576}, {131072, 576}, {65536, 4096}}) {
    if (!report.has_room(fmt::format("row kernels, T={}, C={}", T, C), 4.0 * T * C * sizeof(float)))
      continue;
    const double copy = copy_speed(std::size_t(T) * C * sizeof(float), true);
    fmt::print("  T={}, C={}: a copy of as many bytes {:.0f} GB/s\n", T, C, copy / 1e9);
    RowTensors x{T, C};
    for (const RowKernel& kernel : row_kernels_of(x)) row_kernel(report, x, kernel, copy);
  }
}

void measure(Report& report) {
  for (const bool causal : {false, true})
    for (const int D : {64, 128}) run_attention(report, D, causal);
  run_decode(report);
  run_rows(report);
}

}  // namespace

int main(int argc, char** argv) { return gpu_bench(argc, argv, measure); }
