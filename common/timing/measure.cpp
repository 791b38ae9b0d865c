#include "timing/measure.hpp"

#include <fmt/core.h>
#include <sys/utsname.h>
#if defined(__APPLE__)
#include <sys/sysctl.h>
#endif

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <vector>

#include "fetch_ahead.hpp"
#include "lanes.hpp"
#include "linalg.hpp"
#include "program/print.hpp"
#include "rows.hpp"
#include "statistics.hpp"

namespace t2t {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

static double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return seconds_since(start);
}

/// Whether nobody reads the times, as when pages take other lines from a program's output: then
/// work that would be timed is done once.
static bool is_brief() { return std::getenv("T2T_BRIEF") != nullptr; }

double median_seconds(const std::function<void()>& work) {
  if (is_brief()) return seconds_of(work);
  work();
  std::vector<double> seconds;
  double total = 0;
  while (total < 0.2 || seconds.size() < 3) total += seconds.emplace_back(seconds_of(work));
  return quantile(seconds, 0.5);
}

Pair median_seconds_in_turn(const std::function<void()>& first,
                            const std::function<void()>& second) {
  if (is_brief()) return {seconds_of(first), seconds_of(second)};
  first();
  second();
  std::vector<double> a, b;
  double total = 0;
  while (total < 0.6 || a.size() < 9) {
    total += a.emplace_back(seconds_of(first));
    total += b.emplace_back(seconds_of(second));
  }
  return {quantile(a, 0.5), quantile(b, 0.5)};
}

/// The limit for the current number of threads, measured on the first call.
template <class Measure>
static double kept(std::map<std::size_t, double>& known, Measure measure) {
  const auto found = known.find(thread_count());
  return found != known.end() ? found->second : known[thread_count()] = measure();
}

static constexpr std::size_t block = 1 << 14;  // floats per task: 64 KB

Tensor<1> limit_buffer(double bytes) {
  const std::size_t blocks = (std::size_t(bytes / sizeof(float)) + block - 1) / block;
  return xt::ones<float>({blocks * block});
}

/// As fast as memory delivers the floats: they are prefetched a page early.
static float sum_of_block(const float* from) {
  constexpr std::size_t part = 256;
  float sum = 0;
  for (std::size_t k = 0; k < block; k += part) {
    fetch_ahead(from + k, part * sizeof(float));
    sum += sum_row({from + k, part});
  }
  return sum;
}

float read_all(const Tensor<1>& from) {
  std::vector<float> sums(from.size() / block);
  for_each_row(sums.size(), block,
               [&](std::size_t i) { sums[i] = sum_of_block(&from[i * block]); });
  return sum_row(sums);
}

void copy_all(const Tensor<1>& from, Tensor<1>& to) {
  const auto same = [](Lanes v) { return v; };
  for_each_row(from.size() / block, block, [&](std::size_t i) {
    map_row({&to[i * block], block}, same, ConstRow(&from[i * block], block));
  });
}

double read_bandwidth() {
  static std::map<std::size_t, double> known;
  return kept(known, [] {
    const Tensor<1> from = limit_buffer(256 << 20);
    return double(from.size() * sizeof(float)) / median_seconds([&] { read_all(from); });
  });
}

double copy_bandwidth() {
  static std::map<std::size_t, double> known;
  return kept(known, [] {
    const Tensor<1> from = limit_buffer(64 << 20);
    Tensor<1> to = from;
    return 2.0 * double(from.size() * sizeof(float)) / median_seconds([&] { copy_all(from, to); });
  });
}

double update_bandwidth() {
  static std::map<std::size_t, double> known;
  return kept(known, [] {
    Tensor<1> x = limit_buffer(64 << 20);
    return 2.0 * double(x.size() * sizeof(float)) / median_seconds([&] { copy_all(x, x); });
  });
}

double product_peak() {
  static std::map<std::size_t, double> known;
  return kept(known, [] {
    constexpr std::size_t n = 1024;
    const Tensor<2> a = xt::ones<float>({n, n}), b = xt::ones<float>({n, n});
    Tensor<2> y = empty(n, n);
    return 2.0 * n * n * n / median_seconds([&] { matmul(a, b, y); });
  });
}

void print_roofline_bytes(const std::string& what, double seconds, double bytes, double limit,
                          const std::string& limit_name) {
  fmt::print("  {:<30}{:>9}{:>7.1f} GB/s {:>3.0f} % of {:.1f} ({})\n", what, duration_text(seconds),
             bytes / seconds / 1e9, 100 * bytes / seconds / limit, limit / 1e9, limit_name);
}

void print_roofline_flops(const std::string& what, double seconds, double flops) {
  const double limit = product_peak();
  fmt::print("  {:<30}{:>9}{:>7.1f} GFLOP/s {:>3.0f} % of {:.0f} (a large matrix product)\n", what,
             duration_text(seconds), flops / seconds / 1e9, 100 * flops / seconds / limit,
             limit / 1e9);
}

std::string machine_name() {
#if defined(__APPLE__)
  char name[256] = "";
  std::size_t size = sizeof name - 1;
  if (sysctlbyname("machdep.cpu.brand_string", name, &size, nullptr, 0) == 0) return name;
#endif
  std::ifstream info("/proc/cpuinfo");  // whose lines for ARM's processors have no name
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  utsname system{};
  return uname(&system) == 0 ? fmt::format("unknown {} CPU", system.machine) : "unknown CPU";
}

}  // namespace t2t
