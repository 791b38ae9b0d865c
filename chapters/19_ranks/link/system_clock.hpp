// The system's clocks: of the wall, and of the processor time of a thread or a process.
#pragma once

#include <time.h>

namespace t2t {

inline double seconds_on(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
}

}  // namespace t2t
