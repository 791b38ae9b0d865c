// A ring all-reduce, step by step.
#pragma once

#include "19_ranks/start/communicator.hpp"
#include "tensor.hpp"

namespace t2t {

/// All ranks must call it; rank 0 prints. Each rank's vector has an element for each chunk, a power
/// of ten that tells whose it is, so that each sum shows which ranks are in it. Returns on rank 0
/// what each rank has at the end, [ranks, chunks].
Tensor<2> show_ring(const Communicator& world);

}  // namespace t2t
