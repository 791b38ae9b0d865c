// What sequences read in a step.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "15_serving/engine/sequences.hpp"
#include "15_serving/scheduler/scheduler.hpp"

namespace t2t {

/// What a sequence reads in a step: some of its tokens, and drafts of those that follow.
struct Reading {
  std::size_t id;
  std::vector<int> ids;
  std::size_t wanted = 0;    // how many of the last ids need logits
  std::size_t scored = 0;    // how many of these logits, the first ones, are before the prompt's
  std::size_t drafted = 0;   // how many of the last ids are drafts
  std::size_t accepted = 0;  // how many of these were chosen
  std::string error = {};    // why the sequence can't go on
};

/// All sequences get their part of the plan, and pages for it. Only then do drafts get what is left
/// of budget and pages.
std::vector<Reading> plan_readings(const StepPlan& plan, Sequences& sequences);

}  // namespace t2t
