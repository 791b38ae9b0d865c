// A step of AdamW on shards: each rank moves only what it holds, with chapter 13's optimizer. The
// one thing that no rank can know alone is the norm of the whole gradient, by which it is clipped:
//
//   norm = √(Σ over ranks of Σ over its shard of g²)
//
// A sum of floats would depend on where the tensors are cut, and the clipped step with it. The
// squares are therefore added as integers, in which no order matters: with the power of two 2^e
// above the largest |g| of all ranks, each (g/2^e)² is rounded down to a multiple of 2^-60, and
// counted in units of 2^-30 and 2^-60. (Demmel and Nguyen 2013, "Fast Reproducible Floating-Point
// Summation", round to a grid for the same reason.)
#pragma once

#include <vector>

#include "13_training/trainer/optimizer.hpp"
#include "19_ranks/start/communicator.hpp"

namespace t2t {

/// The Euclidean norm of all ranks' shards together: the same bits for any number of ranks and
/// threads, if the shards together are the same elements. It is off by at most n·2^-59 of its value
/// for n elements, at most 2^33. All ranks must call it with the same tensors. If an element is not
/// finite, all throw std::runtime_error, naming the step, the loss and the first tensor that is not
/// finite on any rank; also when the loss is not finite, or the norm is above 10^19, whose square
/// is too large for a float. Throws as messages.hpp says.
double norm_of_shards(const Communicator& ranks, const std::vector<ListedTensor>& gradients,
                      std::size_t step, double loss);

/// One step of what this rank holds, by the norm of all ranks' gradients, which is reported: if it
/// is above `clip`, the gradients are scaled down. The optimizer, made without clipping, has
/// `gradients`. Throws as its end_step does.
StepReport clipped_step(Optimizer& optimizer, const std::vector<ListedTensor>& gradients,
                        double norm, double clip, double loss);

/// One step on this rank's shards. The optimizer, made without clipping, has the shards of the
/// weights and `gradients`, which are scaled down here if their norm over all ranks is above
/// `clip`. Returns that norm before clipping; the update_ratio is the own shards'. All ranks must
/// call it. Throws as norm_of_shards does; the weights are then as they were on every rank.
StepReport step_of_shards(const Communicator& ranks, Optimizer& optimizer,
                          const std::vector<ListedTensor>& gradients, double clip, double loss);

/// How many values each rank tells the others in a step for the norm: in two all-reduces.
constexpr std::size_t norm_values_first = 2, norm_values_second = 4;

}  // namespace t2t
