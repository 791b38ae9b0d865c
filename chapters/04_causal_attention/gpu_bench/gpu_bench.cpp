// Times the three naive kernels on a GPU, each alone and all together, at sizes of chapter 11's
// ladder: B·T is 16384, H·D is 2048. Each result is checked against float64 before and after it is
// timed, and compared with what the card does at most, which is measured again for each group.
//
//   04_causal_attention_gpu_bench [--json FILE] [--only TEXT]
//
// Bytes are those of the tensors alone, each read or written once: the kernels ask for more. FLOPs
// are those of the two products. With a causal mask half of them are counted, but all bytes,
// because masked scores are stored too. FILE gets one JSON object per line; TEXT chooses the groups
// whose names contain it. No GPU has run this yet.
#include <fmt/format.h>

#include <functional>
#include <string>

#include "04_causal_attention/gpu_bench/gpu_problem.hpp"
#include "04_causal_attention/gpu_bench/naive_steps.hpp"
#include "04_causal_attention/kernels/attention_naive.hpp"
#include "cuda/device.hpp"
#include "cuda/gpu_bench/gpu_report.hpp"

using namespace t2t;

namespace {

constexpr int tokens = 16384, width = 2048, D = 128;

/// A kernel, or all three. FLOPs or bytes of 0 are not shown.
struct Step {
  const char* name;
  double flops, bytes, limit;  // limit: bytes per second
  const char* limit_name;
  std::function<void()> work;
  std::function<double()> error;
  std::function<void()> before = {};  // is run before each timed call
};

std::string share(double speed, double limit, const char* name) {
  return limit > 0 ? fmt::format(" {:5.1f} % of {}", 100 * speed / limit, name) : "";
}

/// Whether the result was right.
bool time_step(Report& report, Tensors<float>& x, const Step& step) {
  x.forget_out();
  const auto times =
      report.timed(fmt::format("{}, T={}{}", step.name, x.T, x.causal ? ", causal" : ""), step.work,
                   step.error, step.before);
  if (!times) return false;
  const double flops = step.flops / (times->median / 1000);
  const double bytes = step.bytes / (times->median / 1000);
  std::string said, fields;
  if (flops > 0) {
    said += fmt::format(" {:6.2f} TFLOP/s{}", flops / 1e12,
                        share(flops, report.limits().floats, "the float32 product"));
    fields += fmt::format(R"(, "tflops": {:.2f})", flops / 1e12);
  }
  if (bytes > 0) {
    said += fmt::format(" {:6.0f} GB/s{}", bytes / 1e9, share(bytes, step.limit, step.limit_name));
    fields += fmt::format(R"(, "gb_s": {:.1f})", bytes / 1e9);
  }
  fmt::print("  {:9} T={:<5} {:8.3f} ms{}\n", step.name, x.T, times->median, said);
  report.write(
      fmt::format(R"("kind": "naive", "kernel": "{}", "D": {}, "T": {}, "causal": {}, {}{})",
                  step.name, D, x.T, x.causal, json(*times), fields));
  return true;
}

void run_size(Report& report, int T, bool causal) {
  const int H = width / D, B = tokens / T;
  const double rows = double(tokens) * width * sizeof(float);  // of q, k, v or out
  const double stored = double(tokens) * H * T * sizeof(float);
  if (!report.has_room(fmt::format("T={}", T), 4 * rows + stored)) return;
  Tensors<float> x{B, T, T, H, H, D, causal};
  const AttentionCall<float> call = x.call();
  DeviceBuffer<float> scores(naive_scores(call));

  const auto run_scores = [&] { launch_naive_scores(call, scores.data()); };
  const double flops = 2.0 * tokens * width * T / (causal ? 2 : 1);  // of one product
  const Limits& most = report.limits();
  // Each step reads what the one before it has left. The softmax works in place, on new scores.
  const Step steps[] = {
      {"scores", flops, 2 * rows + stored, most.copy, "a copy", run_scores,
       [&] { return scores_error(x, scores); }},
      {"softmax", 0, 2 * stored, most.copy, "a copy",
       [&] { launch_naive_softmax(call, scores.data()); }, [&] { return weights_error(x, scores); },
       run_scores},
      {"values", flops, 2 * rows + stored, most.read, "a read",
       [&] { launch_naive_values(call, scores.data()); }, [&] { return worst_error(x); }},
      {"all three", 2 * flops, 0, 0, "", [&] { attend_naive(call, scores.data()); },
       [&] { return worst_error(x); }},
  };
  for (const Step& step : steps)
    if (!time_step(report, x, step)) return;
}

void measure(Report& report) {
  for (const bool causal : {false, true}) {
    if (!report.begins(fmt::format("naive, D={} {}", D, causal ? "causal" : "full"))) continue;
    for (const int T : {512, 1024, 2048}) run_size(report, T, causal);
  }
}

}  // namespace

int main(int argc, char** argv) { return gpu_bench(argc, argv, measure); }
