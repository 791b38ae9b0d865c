// Two ranks with one thread each beside one rank with two threads, at equal work.
#pragma once

#include <cstdint>
#include <vector>

#include "19_ranks/start/communicator.hpp"

namespace t2t {

/// Times prefill, decode and a training step, divided in each direction of the grid, in turns with
/// the same on rank 0 alone while rank 1 waits. Both ranks must call it, and rank 0 prints. Throws
/// std::invalid_argument unless there are two ranks.
void show_threads(const Communicator& world, const std::vector<int>& ids, std::uint64_t seed);

}  // namespace t2t
