// A long prompt that is divided among ranks.
#pragma once

#include <cstdint>

#include "19_ranks/start/communicator.hpp"
#include "tensor.hpp"

namespace t2t {

/// All ranks must call it, with at least two tokens for each; rank 0 prints: what each rank stores
/// and sends in the prefill of so many tokens, by formula and counted, and how its logits agree
/// with one rank's. Returns the last token's logits, [2, V]: on all ranks, and on rank 0 alone.
/// Throws std::runtime_error when a count is not the formula's.
Tensor<2> show_prefill(const Communicator& world, std::size_t T, std::uint64_t seed);

}  // namespace t2t
