// What --split context prints.
#pragma once

#include <cstdint>

#include "19_ranks/start/communicator.hpp"
#include "tensor.hpp"

namespace t2t {

/// Who has which tokens of a drawn sequence, how much work that is, and what attention over it
/// sends. All ranks must call it; rank 0 prints. Returns rank 0's own rows of the result.
Tensor<2> show_context(const Communicator& world, std::uint64_t seed);

}  // namespace t2t
