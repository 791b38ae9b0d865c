// A short training of a small model, which the program runs on all stages, and on one.
#pragma once

#include <cstdint>
#include <vector>

#include "19_ranks/counting/counts.hpp"
#include "21_pipeline/stages/pipeline_trainer.hpp"
#include "21_pipeline/timeline/timeline.hpp"

namespace t2t {

/// Eight blocks, for at most as many stages, with a tied table.
Config pipeline_config();
constexpr std::size_t shown_B = 2, shown_T = 64, shown_steps = 8;

/// What a run came to on one rank.
struct PipelineRun {
  std::vector<double> losses;
  Sent sent;  // in the last step
  std::size_t kept_bytes;
  std::vector<ListedTensor> weights;  // the own, which lie in `elements`
  std::vector<Tensor<1>> elements;
  std::vector<std::vector<MeasuredOperation>> times;  // [steps][operations]
};
/// All ranks must call it.
PipelineRun run_pipeline(const Communicator& ranks, const std::vector<int>& ids, std::uint64_t seed,
                         std::size_t parts, PipelineSchedule schedule);

}  // namespace t2t
