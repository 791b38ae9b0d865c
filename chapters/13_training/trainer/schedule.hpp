// The learning rate of each step: a linear warm-up from 0, then half a cosine down to a floor.
//
//   step n ≤ warmup:  peak·n/warmup        after it:  floor + (peak − floor)·(1 + cos(π·share))/2
//
// share is how much of the steps after the warm-up is over: 0 at its end, 1 at the last step. At
// the end small steps let the weights settle: Loshchilov and Hutter 2016, "SGDR". Warm-up: Goyal et
// al. 2017, "Accurate, Large Minibatch SGD", for large batches. It may help Adam because the
// running square rests on few gradients at first, as Liu et al. 2019 suppose ("On the Variance of
// the Adaptive Learning Rate and Beyond").
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>

namespace t2t {

struct Schedule {
  float peak = 1e-3f, floor = 1e-4f;
  std::size_t warmup = 100, steps = 1000;
};

/// The rate of step n, counted from 1. After the last step it stays at the floor.
inline float rate_at(const Schedule& schedule, std::size_t n) {
  if (n <= schedule.warmup) return schedule.peak * float(n) / float(schedule.warmup);
  const std::size_t left = schedule.steps > schedule.warmup ? schedule.steps - schedule.warmup : 1;
  const double share = std::min(1.0, double(n - schedule.warmup) / double(left));
  const double height = (1 + std::cos(std::numbers::pi * share)) / 2;
  return schedule.floor + (schedule.peak - schedule.floor) * float(height);
}

}  // namespace t2t
