#include "timing/bench.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <ctime>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "files/files.hpp"
#include "linalg.hpp"
#include "program/print.hpp"
#include "rows.hpp"
#include "timing/measure.hpp"

namespace t2t {

void Bench::against_copy(const std::string& what, double bytes, const Work& work) {
  const Tensor<1> from = limit_buffer(bytes / 2);
  Tensor<1> to = from;
  against(what, work, "a copy", [&] { copy_all(from, to); });
}

void Bench::against_update(const std::string& what, double bytes, const Work& work) {
  Tensor<1> x = limit_buffer(bytes / 2);
  against(what, work, "an in-place pass", [&] { copy_all(x, x); });
}

void Bench::against_read(const std::string& what, double bytes, const Work& work) {
  const Tensor<1> from = limit_buffer(bytes);
  against(what, work, "a read", [&] { read_all(from); });
}

void Bench::against(const std::string& what, const Work& work, const std::string& other_name,
                    const Work& other) {
  const Pair seconds = median_seconds_in_turn(work, other);
  fmt::print("  {:<46} {:>2} {:>9}  {:>9} {:<22} {:>5.2f}\n", what, thread_count(),
             duration_text(seconds.first), duration_text(seconds.second), other_name,
             seconds.second / seconds.first);
  std::fflush(stdout);
  lines_.push_back({what, other_name, thread_count(), seconds.first, seconds.second});
}

void Bench::expect_right(const std::string& what, bool right) const {
  if (!right)
    throw std::runtime_error(
        what + ": wanted the same result as the other work, got another; nothing was timed");
}

using nlohmann::json;

/// The figures of all chapters in the file. Throws, naming it, unless it can be read and replaced.
static json recorded(const std::string& file) {
  expect_writable(file);
  if (!std::filesystem::exists(file)) return json::object();
  const json all = json::parse(read_file(file), nullptr, false);
  if (!all.is_object())
    throw std::runtime_error(file + ": wanted a JSON object of figures, got something else");
  return all;
}

/// Writes these lines to the file under the chapter's name, and keeps those of other chapters.
static void record(const std::string& file, const std::string& chapter, const Bench& bench) {
  const std::time_t now = std::time(nullptr);
  json all = recorded(file);
  json& mine = all[chapter];
  const BlasInfo blas = blas_info();
  mine = {{"cpu", machine_name()},
          {"date", fmt::format("{:%Y-%m-%d}", fmt::gmtime(now))},
          {"blas", fmt::format("{}, {} kernels", blas.name, blas.kernels)},
          {"lines", json::array()}};
  for (const Bench::Line& line : bench.lines())
    mine["lines"].push_back({{"what", line.what},
                             {"threads", line.threads},
                             {"seconds", line.seconds},
                             {"limit", line.limit},
                             {"limit_seconds", line.limit_seconds}});
  write_file(file, all.dump(1) + "\n");
}

/// The chapter that this program times: the program's name without "_bench".
static std::string chapter_of(const char* program) {
  const std::string name = std::filesystem::path(program).stem();
  return name.substr(0, name.rfind("_bench"));
}

static int bench_main(const std::string& chapter, int argc, char** argv) {
  CLI::App app(
      "Times this chapter's work beside limits of the same kind, with one thread and with all.",
      chapter);
  std::string file;
  app.add_option("--json", file, "write the figures to FILE, and keep those of other chapters")
      ->type_name("FILE");
  CLI11_PARSE(app, argc, argv);
  if (app.count("--json") > 0 && file.empty())
    throw std::invalid_argument("--json: wanted a file, got an empty name");
  if (!file.empty()) recorded(file);  // throws before anything is measured

  Bench all;
  const int most = int(thread_count());
  fmt::print("\n{}\n\n  {:<46} {:>2} {:>9}  {:>32} {:>5}\n", chapter, "work", "on", "median",
             "beside                ", "ratio");
  for (int threads = 1; threads <= most; threads = threads < most ? most : most + 1) {
    set_threads(threads);
    bench(all);
  }
  if (!file.empty()) record(file, chapter, all);
  return 0;
}

}  // namespace t2t

int main(int argc, char** argv) {
  const std::string chapter = t2t::chapter_of(argv[0]);
  try {
    return t2t::bench_main(chapter, argc, argv);
  } catch (const std::exception& error) {
    std::cerr << chapter << " bench: " << error.what() << '\n';
    return 1;
  }
}
