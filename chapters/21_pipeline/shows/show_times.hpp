// A step of the pipeline as it ran: by the wall's clock, and as it would run on p devices.
#pragma once

#include <string>

#include "19_ranks/start/communicator.hpp"
#include "21_pipeline/shows/pipeline_run.hpp"

namespace t2t {

/// All ranks must call it; rank 0 prints two timelines. The first one is drawn from the times at
/// which each rank's operations of the last step began and ended; on fewer cores than ranks, it
/// shows how the ranks share them. For the second one, a clock plays the schedule with each
/// operation's median processor time over all steps. Returns it as a drawing in SVG on rank 0.
std::string show_times(const Communicator& world, const PipelineRun& run, std::size_t parts,
                       PipelineSchedule schedule);

}  // namespace t2t
