// Measures speed as ratios: the time of a piece of work beside the time of a limit of the same
// kind, measured alternately in one run.
//
// A chapter's bench.cpp defines t2t::bench; ./learn bench builds it with the main in bench.cpp here
// and runs it with one thread and with all threads. The pages quote docs/recorded/measured.json,
// one run.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace t2t {

class Bench {
 public:
  using Work = std::function<void()>;

  /// Compares with a copy by ordinary stores of as many bytes, read and written together.
  void against_copy(const std::string& what, double bytes, const Work& work);
  /// Compares with an in-place pass over as many bytes, read and written together.
  void against_update(const std::string& what, double bytes, const Work& work);
  /// Compares with a sum over as many bytes, which only reads.
  void against_read(const std::string& what, double bytes, const Work& work);
  /// Compares with any other work. The ratio is other's time over work's: with 2, work is twice as
  /// fast.
  void against(const std::string& what, const Work& work, const std::string& other_name,
               const Work& other);

  /// Throws std::runtime_error, naming the work, unless right: check a result, then time it.
  void expect_right(const std::string& what, bool right) const;

  struct Line {
    std::string what, limit;
    std::size_t threads;
    double seconds, limit_seconds;  // medians of calls made in turn
  };
  const std::vector<Line>& lines() const { return lines_; }

 private:
  std::vector<Line> lines_;
};

/// What a chapter measures; its bench.cpp defines it.
void bench(Bench& bench);

}  // namespace t2t
