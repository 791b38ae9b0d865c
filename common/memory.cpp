#include "memory.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>

namespace t2t {

static constexpr double no_limit = std::numeric_limits<double>::infinity();

/// The number after a key, in a file of lines "key number …"; nothing without that key.
static std::optional<double> number_of(const std::filesystem::path& file, std::string_view key) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(key)) return std::strtod(line.c_str() + key.size(), nullptr);
  return std::nullopt;
}

/// The number that a file begins with; nothing when it begins with a word.
static std::optional<double> number_in(const std::filesystem::path& file) {
  double number = 0;
  if (std::ifstream(file) >> number) return number;
  return std::nullopt;
}

double left_in_group(const std::filesystem::path& group) {
  const bool second = std::filesystem::exists(group / "memory.max");
  const std::optional<double> most =
      number_in(group / (second ? "memory.max" : "memory.limit_in_bytes"));
  const std::optional<double> used =
      number_in(group / (second ? "memory.current" : "memory.usage_in_bytes"));
  if (!most || !used) return no_limit;
  double left = *most - *used;
  for (const std::string key : {"inactive_file ", "active_file "})
    left += number_of(group / "memory.stat", (second ? "" : "total_") + key).value_or(0);
  return std::clamp(left, 0.0, *most);
}

/// The least of all control groups that this process is in, and of the groups above them.
static double left_in_groups() {
  double least = no_limit;
  std::ifstream lines("/proc/self/cgroup");  // "4:memory:/path" of version 1, "0::/path" of 2
  for (std::string line; std::getline(lines, line);) {
    const std::size_t kind = line.find(':') + 1, path = line.find(':', kind) + 1;
    const std::string controller = line.substr(kind, path - kind);
    if (controller != ":" && controller != "memory:") continue;
    const std::string root = controller == ":" ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
    std::filesystem::path group = root + line.substr(path);
    for (; group.native().size() >= root.size(); group = group.parent_path())
      least = std::min(least, left_in_group(group));
  }
  return least;
}

/// What a limit of this process leaves. key names what it counts in /proc/self/status.
static double left_of(int resource, std::string_view key) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return no_limit;
  const double used = 1024 * number_of("/proc/self/status", key).value_or(0);
  return std::max(0.0, double(limit.rlim_cur) - used);
}

/// All memory of this machine: what is known where there is no /proc/meminfo.
static double all_memory() {
  const double pages = double(sysconf(_SC_PHYS_PAGES)), bytes = double(sysconf(_SC_PAGESIZE));
  return pages > 0 && bytes > 0 ? pages * bytes : no_limit;
}

double free_memory() {
  const std::optional<double> available = number_of("/proc/meminfo", "MemAvailable:");
  const double swap = number_of("/proc/meminfo", "SwapFree:").value_or(0);
  return std::min({available ? 1024 * (*available + swap) : all_memory(), left_in_groups(),
                   left_of(RLIMIT_AS, "VmSize:"), left_of(RLIMIT_DATA, "VmData:")});
}

std::string bytes_text(double bytes) {
  if (bytes >= 99.5e9) return fmt::format("{:.0f} GB", bytes / 1e9);
  if (bytes >= 1e9) return fmt::format("{:.1f} GB", bytes / 1e9);
  return fmt::format("{:.{}f} MB", bytes / 1e6, bytes < 10e6 ? 1 : 0);
}

void expect_memory(double bytes, std::string_view what, std::string_view remedy) {
  const double free = free_memory();
  if (bytes <= free) return;
  throw std::runtime_error(fmt::format("{}: wants about {} of memory, and {} are free; {}", what,
                                       bytes_text(bytes), bytes_text(free), remedy));
}

void limit_memory() {
  rlimit limit{};
  const std::optional<double> used = number_of("/proc/self/status", "VmData:");
  if (!used || getrlimit(RLIMIT_DATA, &limit) != 0) return;
  const double most = 1024 * *used + free_memory();
  if (most >= double(limit.rlim_cur)) return;
  limit.rlim_cur = rlim_t(most);
  setrlimit(RLIMIT_DATA, &limit);
}

}  // namespace t2t
