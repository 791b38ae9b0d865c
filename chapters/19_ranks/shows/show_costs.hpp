// What collectives send and how long they take, by formula and measured.
#pragma once

#include "19_ranks/start/communicator.hpp"
#include "tensor.hpp"

namespace t2t {

/// All ranks must call these; rank 0 prints.

/// The most messages and bytes that a rank sends in each collective of n floats, by formula and as
/// counted. Returns both, [collective, 4], on each rank. Throws std::runtime_error when they
/// differ.
Tensor<2> show_counts(const Communicator& world, std::size_t n);

/// Latency and bandwidth between two ranks, and the times of both all-reduces and MPI's own beside
/// what they predict, for a short and a long vector.
void show_times(const Communicator& world);

}  // namespace t2t
