// A step of a pipeline in time: when each stage computes what, and how long it is idle.
//
// `played` lets a clock run through a schedule: a stage begins its next operation as soon as it has
// finished the last one and what the operation needs has been computed elsewhere. Messages take no
// time. With measured times of single operations this shows what p devices would do, also on a
// machine whose few cores the ranks have to share.
#pragma once

#include <string>
#include <vector>

#include "21_pipeline/schedule.hpp"

namespace t2t {

/// An operation and its time, in seconds or any other unit.
struct Played {
  Operation operation;
  double begin, end;
};
/// Of each stage, its operations in order.
using Timeline = std::vector<std::vector<Played>>;

/// How long each operation of each stage takes: [stages][operations].
using Durations = std::vector<std::vector<double>>;
/// The same time for each forward and for each backward pass.
Durations equal_durations(const std::vector<std::vector<Operation>>& stages, double forward,
                          double backward);

/// Throws std::runtime_error, naming the stage and the operation, when all stages wait for each
/// other for ever; std::invalid_argument when the durations are not as many as the operations.
Timeline played(const std::vector<std::vector<Operation>>& stages, const Durations& durations);

double first_begin(const Timeline& timeline);
/// From the first begin to the last end of all stages.
double length_of(const Timeline& timeline);
/// The share of this time in which a stage computes nothing, over all stages.
double idle_share(const Timeline& timeline);

/// A line per stage, `columns` characters long, time to the right: digits are forward passes,
/// letters backward passes, and a dot stands for an idle stage. The micro-batches count from 0, and
/// again from it after 9, and from a, and again from it after z.
std::vector<std::string> drawn(const Timeline& timeline, std::size_t columns);

}  // namespace t2t
