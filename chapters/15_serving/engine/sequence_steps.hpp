// What each sequence does in a step.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "15_serving/engine/sequences.hpp"
#include "15_serving/scheduler/scheduler.hpp"

namespace t2t {

/// One sequence's part of a step: the tokens given to the model, the last of which may be drafts,
/// and what became of them.
struct SequenceStep {
  std::size_t id;
  std::vector<int> ids;
  std::size_t wanted = 0;  // how many of the last ids need rows of logits
  /// How many of these rows, the first ones, are logits for tokens of the prompt.
  std::size_t prompt_logits = 0;
  std::size_t drafted = 0;   // how many of the last ids are drafts
  std::size_t accepted = 0;  // how many of these were chosen
  std::string error = {};    // why the sequence can't go on
};

/// All sequences get their part of the plan, and pages for it. Only then do drafts get what is left
/// of budget and pages.
std::vector<SequenceStep> plan_sequence_steps(const StepPlan& plan, Sequences& sequences);

}  // namespace t2t
