// Recall after training.
#pragma once

#include "24_delta_rule/learned/learn_recall.hpp"

namespace t2t {

/// Trains one model, and prints what it finds. Returns the exit status.
int show_learned(const RecallOptions& options);

}  // namespace t2t
