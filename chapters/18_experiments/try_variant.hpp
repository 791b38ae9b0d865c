// How one side of an experiment is trained and measured: a sweep over learning rates, then more
// seeds at the best one.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "18_experiments/experiments.hpp"

namespace t2t {

/// The held-out loss of a run; infinity when the run ended in values that are not finite.
struct Trial {
  float rate;
  std::uint64_t seed;
  double held_out;
  std::size_t dead_units = 0;  // on the held-out text, if the experiment counts them
};
/// A variant's results: the sweep with seed 1, from the first rate by factors of 2 in both
/// directions until two rates in a row are no better, then the best rate with the other seeds.
struct Outcome {
  std::vector<Trial> sweep;                    // by rate
  std::vector<Trial> seeds;                    // at the best rate, the first one from the sweep
  double seconds_a_step;                       // median over the runs
  std::vector<double> perplexity_by_position;  // up to 1, 2, 3 and 4 times the trained length
};
Outcome try_variant(const Experiment& experiment, const Variant& variant,
                    std::span<const int> train, std::span<const int> held_out, std::size_t seeds,
                    const std::function<void(const Trial&)>& after_trial = {});

/// Mean, least and largest held-out loss over the seeds.
struct Spread {
  double mean, least, most;
};
Spread spread_of(const std::vector<Trial>& trials);

}  // namespace t2t
