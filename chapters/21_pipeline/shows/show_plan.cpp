#include "21_pipeline/shows/show_plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "21_pipeline/shows/print_timeline.hpp"
#include "program/print.hpp"

namespace t2t {

static Timeline planned(PipelineSchedule schedule, std::size_t stages, std::size_t parts) {
  std::vector<std::vector<Operation>> all;
  for (std::size_t s = 0; s < stages; ++s) all.push_back(operations_of(schedule, stages, s, parts));
  return played(all, equal_durations(all, 1, 2));
}

Tensor<2> show_plan(std::size_t stages, std::size_t parts) {
  print_section(
      fmt::format("{} micro-batches on {} stages, backward passes twice as long", parts, stages));
  const Timeline gpipe = planned(PipelineSchedule::gpipe, stages, parts),
                 alternating = planned(PipelineSchedule::one_f_one_b, stages, parts);
  // Two characters for a forward pass, or fewer if the line would be too long.
  const std::size_t units = std::size_t(length_of(gpipe));
  const std::size_t columns = std::min<std::size_t>(2 * units, 66);
  fmt::print("  GPipe\n");
  print_timeline(gpipe, columns);
  fmt::print("\n  1F1B\n");
  print_timeline(alternating, columns);
  fmt::print("\n");
  print_paragraph(fmt::format(
      "Digits are forward passes and letters backward passes of a micro-batch; a dot is an idle "
      "stage. Idle, as a share of all time: {:.1f} % with GPipe, {:.1f} % with 1F1B; the formula "
      "says (p - 1)/(m + p - 1) = {:.1f} %. As a share of the useful time, (p - 1)/m, it is {:.1f} "
      "%.",
      100 * idle_share(gpipe), 100 * idle_share(alternating), 100 * idle_share(stages, parts),
      100 * double(stages - 1) / double(parts)));
  Tensor<2> shares = empty(1, 3);
  shares(0, 0) = float(idle_share(gpipe)), shares(0, 1) = float(idle_share(alternating));
  shares(0, 2) = float(idle_share(stages, parts));
  return shares;
}

}  // namespace t2t
