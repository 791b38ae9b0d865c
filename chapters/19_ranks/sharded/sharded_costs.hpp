// What a step sends and what a rank stores, by formula, for the three splits. With P parameters in
// all, p ranks and r = (p − 1)/p, a rank sends about
//
//   data    2r·4P bytes            the all-reduce of the gradient
//   ZeRO-1  r·4P + r·4P bytes      its two halves: reduce-scatter of gradients, all-gather of
//   weights FSDP    3r·4P bytes a round    two gathers of the weights and a reduce-scatter of the
//   gradient
//
// and the losses and the norm, a few values. FSDP gathers twice only what is in blocks: tables and
// the final norm stay in their room. Chunks differ by an element where p does not divide a tensor,
// and the formulas count them as they are.
#pragma once

#include <cstddef>

#include "09_language_model/config.hpp"
#include "19_ranks/counting/costs.hpp"
#include "19_ranks/data_parallel/data_trainer.hpp"

namespace t2t {

enum class TrainingSplit { data, zero1, fsdp };

/// What rank `rank` of `size` sends in a step of so many parts.
Sent step_cost(TrainingSplit split, SumOrder order, const Config& config, std::size_t parts,
               std::size_t size, std::size_t rank);

/// What it stores: 16 bytes per parameter in all for weights, one gradient and two means; only its
/// shard of what is sharded; one gradient more for each further sum that is held while the parts
/// are added; FSDP's rooms, which are two models of one block.
HeldBytes stored(TrainingSplit split, SumOrder order, const Config& config, std::size_t parts,
                 std::size_t size, std::size_t rank);

}  // namespace t2t
