// What the stages of a pipeline store, send and learn.
#pragma once

#include "19_ranks/start/communicator.hpp"
#include "21_pipeline/shows/pipeline_run.hpp"
#include "tensor.hpp"

namespace t2t {

/// All ranks must call both; rank 0 prints.
/// What each stage sends and saves, by formula and counted, under both schedules. Throws
/// std::runtime_error when a count is not the formula's.
void show_costs(const Communicator& world, std::size_t parts, const PipelineRun& gpipe,
                const PipelineRun& alternating);
/// The losses on one stage and on all, and how many weights differ. Returns the losses,
/// [steps, 2], in nats per byte.
Tensor<2> show_losses(const Communicator& world, const PipelineRun& alone, const PipelineRun& run);

}  // namespace t2t
