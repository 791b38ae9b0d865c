// A training on one rank and on many, each of which has a part of the model.
#pragma once

#include <cstdint>
#include <string>

#include "19_ranks/start/communicator.hpp"
#include "tensor.hpp"

namespace t2t {

/// How many ranks it can show: one for each key head.
constexpr std::size_t most_training_ranks = 6;

/// All ranks must call it; rank 0 prints. A small model learns the text's bytes, on one rank and on
/// all: the losses, what a step sends, by formula and counted, and what a rank stores. Returns the
/// losses, [steps, 2], in nats per byte. Throws as SplitTrainer does for more ranks.
Tensor<2> show_training(const Communicator& world, const std::string& text, std::uint64_t seed);

}  // namespace t2t
