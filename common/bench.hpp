// Speed, as ratios in one run: each piece of work beside a limit of the same kind, measured in
// turn.
//
// A chapter's bench.cpp defines t2t::bench; ./learn bench builds it with the main in bench.cpp here
// and runs it with one thread and with all. The pages quote docs/measured.json, one recorded run.
#pragma once

#include <functional>
#include <string>

namespace t2t {

class Bench {
 public:
  using Work = std::function<void()>;

  /// Share of a copy with ordinary stores of as many bytes (read and written together).
  void against_copy(const std::string& what, double bytes, const Work& work);
  /// Share of an update in place, each number read and written back, of as many bytes together.
  void against_update(const std::string& what, double bytes, const Work& work);
  /// Share of the bandwidth at which this machine sums as many bytes.
  void against_read(const std::string& what, double bytes, const Work& work);
  /// other's time over work's: 2 means that work is twice as fast. Any two pieces of work.
  void against(const std::string& what, const Work& work, const std::string& other_name,
               const Work& other);

  /// Throws std::runtime_error, naming the work, unless what it computed is right: check, then
  /// time.
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

/// What a chapter measures: defined in its bench.cpp.
void bench(Bench& bench);

}  // namespace t2t
