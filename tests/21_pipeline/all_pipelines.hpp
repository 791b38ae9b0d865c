// All small pipelines: up to six stages and thirteen micro-batches, more and fewer than stages.
#pragma once

#include <doctest/doctest.h>

#include <vector>

#include "21_pipeline/schedule.hpp"

namespace t2t::all_pipelines {

using enum Operation::Pass;
using Operations = std::vector<Operation>;

constexpr auto gpipe = PipelineSchedule::gpipe, one_f_one_b = PipelineSchedule::one_f_one_b;
constexpr std::size_t most_stages = 6, most_parts = 13;

inline std::vector<Operations> all_stages(PipelineSchedule schedule, std::size_t p, std::size_t m) {
  std::vector<Operations> stages;
  for (std::size_t s = 0; s < p; ++s) stages.push_back(operations_of(schedule, p, s, m));
  return stages;
}

/// Calls check(schedule, p, m) for all small pipelines, also with fewer micro-batches than stages.
template <class Check>
void for_each_pipeline(Check check) {
  for (const PipelineSchedule schedule : {gpipe, one_f_one_b})
    for (std::size_t p = 1; p <= most_stages; ++p)
      for (std::size_t m = 1; m <= most_parts; ++m) {
        CAPTURE(int(schedule));
        CAPTURE(p);
        CAPTURE(m);
        check(schedule, p, m);
      }
}

}  // namespace t2t::all_pipelines
