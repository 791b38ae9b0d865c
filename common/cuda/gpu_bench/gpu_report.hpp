// What the benches on a GPU share: the limits that results are compared with, the file that results
// are written to, and the main function.
#pragma once

#include <fstream>
#include <functional>
#include <optional>
#include <string>

#include "cuda/gpu_bench/gpu_timing.hpp"

namespace t2t {

/// What the card does at most: bytes a second, and FLOP/s. Without cuBLAS the last two are 0.
struct Limits {
  double copy, read, mma, matrix, floats;
};

/// Prints results, and appends each to the file as a JSON object a line, as soon as it is known.
class Report {
 public:
  /// file: "" for none. only: a group is measured if its name contains this text.
  Report(const std::string& file, std::string only);

  /// Whether the group is wanted. If it is, measures the limits, now that the card is warm.
  bool begins(const std::string& group);
  const Limits& limits() const { return limits_; }

  /// Times the work if error() is at most 1 before and after. Otherwise prints and writes that the
  /// result is wrong. error() looks at what was computed last, or computes it anew.
  std::optional<Times> timed(const std::string& what, const std::function<void()>& work,
                             const std::function<double()>& error,
                             const std::function<void()>& before = {});

  /// Whether there is memory for something; if not, says that it is left out.
  bool has_room(const std::string& what, double bytes);

  /// fields: of a JSON object, without its braces.
  void write(const std::string& fields);

  bool all_right() const { return wrong_ == 0; }

 private:
  std::ofstream lines_;
  std::string only_;
  Limits limits_{};
  int wrong_ = 0;
};

/// "least_ms": …, "ms": …, "p90_ms": …
std::string json(const Times& times);

/// The main function: NAME [--json FILE] [--only TEXT]. Ends with 1 if a result was wrong, and with
/// 3 if there is no GPU.
int gpu_bench(int argc, char** argv, void (*measure)(Report&));

}  // namespace t2t
