#include "cuda/gpu_bench/gpu_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <stdexcept>
#include <utility>
#include <vector>

#include "cuda/device.hpp"

namespace t2t {

Report::Report(const std::string& file, std::string only) : only_(std::move(only)) {
  if (file.empty()) return;
  lines_.open(file, std::ios::app);
  if (!lines_) throw std::runtime_error("cannot write " + file);
}

bool Report::begins(const std::string& group) {
  if (group.find(only_) == std::string::npos) return false;
  const bool cublas = has_cublas();
  limits_ = {copy_speed(), read_speed(), mma_peak(), cublas ? matrix_peak() : 0,
             cublas ? float_matrix_peak() : 0};
  const auto& [copy, read, mma, matrix, floats] = limits_;
  fmt::print(
      "{}: copy {:.0f} GB/s, read {:.0f} GB/s; TFLOP/s of mma.sync {:.0f}, of matrix products {}\n",
      group, copy / 1e9, read / 1e9, mma / 1e12,
      cublas ? fmt::format("bf16 {:.0f}, float32 {:.0f}", matrix / 1e12, floats / 1e12)
             : "not measured (no cuBLAS)");
  write(fmt::format(R"("kind": "limits", "group": "{}", "copy_gb_s": {:.1f}, "read_gb_s": {:.1f}, )"
                    R"("mma_tflops": {:.1f}, "matrix_tflops": {:.1f}, "float_tflops": {:.1f})",
                    group, copy / 1e9, read / 1e9, mma / 1e12, matrix / 1e12, floats / 1e12));
  return true;
}

std::optional<Times> Report::timed(const std::string& what, const std::function<void()>& work,
                                   const std::function<double()>& error,
                                   const std::function<void()>& before) {
  work();
  double worst = error();
  if (worst <= 1) {
    const Times times = time_calls(work, before);
    if (worst = error(); worst <= 1) return times;
  }
  ++wrong_;
  fmt::print("  {}: WRONG, the error is {} times its bound\n", what, worst);
  write(fmt::format(R"("kind": "wrong", "what": "{}", "error": "{}")", what, worst));
  return std::nullopt;
}

bool Report::has_room(const std::string& what, double bytes) {
  const double free = double(free_device_memory());
  if (bytes < 0.9 * free) return true;
  fmt::print("  {}: left out: wanted {:.1f} GB of memory, {:.1f} are free\n", what, bytes / 1e9,
             free / 1e9);
  write(fmt::format(R"("kind": "left out", "what": "{}", "wanted_gb": {:.1f}, "free_gb": {:.1f})",
                    what, bytes / 1e9, free / 1e9));
  return false;
}

void Report::write(const std::string& fields) {
  std::fflush(stdout);
  if (lines_.is_open() && !(lines_ << '{' << fields << "}\n").flush())
    throw std::runtime_error("cannot write the results");
}

std::string json(const Times& times) {
  return fmt::format(R"("least_ms": {:.5f}, "ms": {:.5f}, "p90_ms": {:.5f})", times.least,
                     times.median, times.p90);
}

int gpu_bench(int argc, char** argv, void (*measure)(Report&)) try {
  const std::vector<std::string> words(argv + 1, argv + argc);
  std::string file, only;
  for (std::size_t i = 0; i < words.size(); i += 2) {
    const bool is_file = words[i] == "--json";
    if (i + 1 == words.size() || (!is_file && words[i] != "--only"))
      throw std::runtime_error(fmt::format("usage: {} [--json FILE] [--only TEXT]", argv[0]));
    (is_file ? file : only) = words[i + 1];
  }
  if (!has_gpu()) {
    fmt::print("no GPU found: nothing was measured\n");
    return 3;
  }
  fmt::print("{}\n", device_name());
  Report report(file, only);
  measure(report);
  return report.all_right() ? 0 : 1;
} catch (const std::exception& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}

}  // namespace t2t
