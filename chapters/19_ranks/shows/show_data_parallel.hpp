// The same training on one rank and on many.
#pragma once

#include <cstdint>
#include <string>

#include "19_ranks/start/communicator.hpp"
#include "tensor.hpp"

namespace t2t {

/// Trains a small model on the text: on one rank, and on all in both orders of the sums. Shows the
/// losses, the weights' differences from one rank's, and what a step sends, by formula and counted.
/// All ranks must call it; rank 0 prints. Returns the losses on rank 0, [steps, 3], in nats per
/// byte. Throws std::invalid_argument for more ranks than a step's batch has parts, which are 8.
Tensor<2> show_data_parallel(const Communicator& world, const std::string& text,
                             std::uint64_t seed);
constexpr std::size_t shown_parts = 8;

}  // namespace t2t
