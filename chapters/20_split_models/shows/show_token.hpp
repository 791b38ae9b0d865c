// One token through a small model that is divided among ranks: what it costs, and what comes out.
#pragma once

#include <cstdint>

#include "09_language_model/config.hpp"
#include "19_ranks/start/communicator.hpp"
#include "tensor.hpp"

namespace t2t {

/// Nine query heads and three key heads, as in SmolLM2-135M, in 4 blocks of width 72.
Config shown_config();

/// All ranks must call it; rank 0 prints. The messages and bytes that a token costs, by formula and
/// as counted, and how far the logits are from one rank's. Returns the logits of both, [2, V].
/// Throws std::runtime_error when the counts differ from the formulas on any rank.
Tensor<2> show_token(const Communicator& world, std::uint64_t seed);

}  // namespace t2t
