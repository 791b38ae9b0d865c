// What a stage of a pipeline sends in a step and saves for its backward pass, by formula. With B·T
// tokens in each of m micro-batches, floats of 4 bytes, and a stage between two others:
//
//   sent    m messages to the next stage and m to the one before, of 4·B·T·C bytes each
//   saved   4·B·T·(2C + 2HD + 2GD + 2F) bytes for each of its blocks and each micro-batch in flight
//
// A network without a gate saves F elements less, a block in post-norm C more. The last stage also
// saves the head's gradient, B·T·C. In a tied model, the first stage and the last one send each
// other the gradient of the table. All stages share the loss and what the norm needs, a few values.
#pragma once

#include "19_ranks/counting/counts.hpp"
#include "21_pipeline/schedule.hpp"
#include "21_pipeline/stages/stage_tensors.hpp"

namespace t2t {

/// Messages between neighbours in a step of m micro-batches of `tokens` tokens each.
Sent neighbours_cost(const Config& whole, StagePlace place, std::size_t tokens, std::size_t parts);
/// The gradient of a tied table, between the two stages that store it.
Sent table_cost(const Config& whole, StagePlace place);
/// All messages of a step.
Sent pipeline_step_cost(const Config& whole, StagePlace place, std::size_t tokens,
                        std::size_t parts);

/// What the stage's slots hold, in bytes.
std::size_t kept_cost(const Config& whole, StagePlace place, std::size_t tokens,
                      std::size_t in_flight);

}  // namespace t2t
