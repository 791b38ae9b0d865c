// Trains a model for recall, and measures it on sequences that it has not seen.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "24_delta_rule/learned/recall_model.hpp"

namespace t2t {

struct RecallOptions {
  std::string kind;         // attention, window, linear, delta or hybrid
  PairsTask task;           // the longest: training draws from pairs_up_to(task.pairs)
  std::size_t steps = 600;  // at most: training ends early once the held-out share is 0.99
  std::size_t B = 16;       // sequences of a step
  float rate = 0.01f;       // at its peak
  std::uint64_t seed = 1;
};

struct RecallResult {
  std::size_t steps;  // that were done
  double share;       // of the answers on held-out sequences of task.pairs that are right
  std::vector<double> by_pairs = {};  // the same for each of pairs_up_to(task.pairs)
};

/// 1, 2, 4 … below `pairs`, and then `pairs`.
std::vector<std::size_t> pairs_up_to(std::size_t pairs);

/// The sizes of all kinds: two heads of width 8, and 32 channels.
DeltaLayerSettings recall_sizes();

/// The share of the answers that are right, over `count` sequences drawn from a seed. Throws as
/// recall_logits does.
double share_recalled(const RecallModel& model, const PairsTask& task, std::size_t count,
                      std::uint64_t seed);

/// Draws a model and trains it; `report`, if given, gets each measurement on the way. The sequences
/// to stop by, those of the result and those of training are from different streams of the seed.
/// Throws std::invalid_argument for a kind that there isn't, when steps or B is 0, unless the
/// rate is above 0, and as
/// expect_pairs does.
RecallResult learn_recall(const RecallOptions& options,
                          const std::function<void(const RecallResult&)>& report = {});

}  // namespace t2t
