// The best layout of a training, found by trying all of them.
#pragma once

#include <vector>

#include "20_split_models/planner/rank_memory.hpp"
#include "20_split_models/planner/step_time.hpp"

namespace t2t {

struct Plan {
  Layout layout;
  StepTime time;
  RankMemory memory;
};

/// The layouts that fit into the devices' memory, by the time of a step, at most `most` of them.
/// Tried are tensor groups within a node that divide H and F, context groups only if a sequence is
/// longer than 32,768 tokens, pipelines of at most L stages, data groups of at most B ranks,
/// experts divided among them, 1 to 8 sequences in a micro-batch, all shardings, with and without
/// recomputation. Stages are interleaved in up to four chunks. Of equally fast layouts, the one
/// with fewer ranks in tensor groups and pipelines comes first. Throws std::invalid_argument when a
/// size is 0, and std::runtime_error if no layout uses all devices, or if none fits, with the least
/// memory.
std::vector<Plan> plans(const ModelShape& model, const Cluster& cluster, const Job& job,
                        std::size_t most);

}  // namespace t2t
