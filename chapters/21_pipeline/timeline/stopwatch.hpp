// How long a stage computes: by the clock on the wall, which all processes of a machine share, and
// by the time that the processor has worked for it. The wall's includes waiting for a core that
// another process uses.
#pragma once

#include "19_ranks/link/system_clock.hpp"
#include "21_pipeline/schedule.hpp"

namespace t2t {

/// An operation of a stage without its messages, in seconds.
struct MeasuredOperation {
  Operation operation;
  double begin, end;  // by the wall
  double processor;   // of the calling thread, which computes as long as its helpers do
};

class Stopwatch {
 public:
  /// What was computed since the stopwatch was made.
  MeasuredOperation stop(Operation operation) const {
    return {operation, begin_, seconds_on(CLOCK_MONOTONIC),
            seconds_on(CLOCK_THREAD_CPUTIME_ID) - processor_};
  }

 private:
  double begin_ = seconds_on(CLOCK_MONOTONIC), processor_ = seconds_on(CLOCK_THREAD_CPUTIME_ID);
};

}  // namespace t2t
