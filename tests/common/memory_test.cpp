// Memory is asked for before it is taken, and what can't be had is refused with its size.
#include "memory.hpp"

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

namespace t2t::memory_test {

TEST_CASE("more than is free is refused, with what is wanted and why") {
  CHECK(free_memory() > 0);
  CHECK_NOTHROW(expect_memory(4096, "a page"));
  CHECK_THROWS_WITH_AS(expect_memory(20.48e18, "a table"),
                       doctest::Contains("a table: wants about 20480000000 GB of memory, and "),
                       std::runtime_error);
  CHECK_THROWS_WITH(expect_memory(1e18, "a table"), doctest::Contains("; make the sizes smaller"));
  CHECK(bytes_text(28.4e6) == "28 MB");
  CHECK(bytes_text(20.48e9) == "20.5 GB");
}

/// Files of a folder that looks like a control group.
static void write_group(const std::filesystem::path& group, const std::string& most,
                        const std::string& used, const std::string& names) {
  std::filesystem::create_directories(group);
  const bool second = names == "2";
  std::ofstream(group / (second ? "memory.max" : "memory.limit_in_bytes")) << most << '\n';
  std::ofstream(group / (second ? "memory.current" : "memory.usage_in_bytes")) << used << '\n';
  const std::string in_all = second ? "" : "total_";
  std::ofstream(group / "memory.stat") << "anon 5\ninactive_file 7\n"
                                       << in_all << "inactive_file 100\n"
                                       << in_all << "active_file 20\nslab 3\n";
}

TEST_CASE("a control group leaves its limit less what is in use but for pages of files") {
  const std::filesystem::path group =
      std::filesystem::temp_directory_path() / ("t2t-group-" + std::to_string(getpid()));
  write_group(group, "9000", "1000", "1");
  CHECK(left_in_group(group) == 9000 - 1000 + 100 + 20);
  write_group(group, "9223372036854771712", "1000", "1");
  CHECK(left_in_group(group) > 9e18);
  write_group(group, "max", "1000", "2");
  CHECK(std::isinf(left_in_group(group)));
  write_group(group, "9000", "10000", "2");
  CHECK(left_in_group(group) == 0);
  std::filesystem::remove_all(group);
  CHECK(std::isinf(left_in_group(group)));
}

TEST_CASE("what ulimit leaves is what is free, and no more can be had") {
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_DATA, &before) == 0);
  const double free = free_memory();
  limit_memory();
  rlimit limited{};
  getrlimit(RLIMIT_DATA, &limited);
  if (std::isfinite(free)) {
    CHECK(limited.rlim_cur != RLIM_INFINITY);
    const double left = free_memory();
    CHECK(left <= 1.1 * free);
    limited.rlim_cur -= rlim_t(left / 2);
    setrlimit(RLIMIT_DATA, &limited);
    CHECK(free_memory() < 0.6 * left);
  }
  setrlimit(RLIMIT_DATA, &before);
}

}  // namespace t2t::memory_test
