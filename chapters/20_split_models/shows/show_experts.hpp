// What --split experts prints.
#pragma once

#include <cstdint>
#include <string>

#include "19_ranks/start/communicator.hpp"
#include "tensor.hpp"

namespace t2t {

/// Experts of each layer that is shown: the most ranks there can be.
constexpr std::size_t shown_experts = 8;

/// All ranks must call these; rank 0 prints. They throw as own_experts does for more ranks.

/// What a layer sends, by formula and counted, and then show_expert_loads.
Tensor<2> show_experts(const Communicator& world, std::uint64_t seed);

/// The work of the fullest rank over the mean, counted and measured: under three loads, for ranks
/// that have neighbouring experts, or experts dealt out by load, with what a capacity drops.
/// Returns what was counted, [3 loads, 2 orders].
Tensor<2> show_expert_loads(const Communicator& world, std::uint64_t seed);

/// A mixture of experts learns the text's bytes, on one rank and on all. Returns the losses,
/// [steps, 2], in nats per byte.
Tensor<2> show_expert_training(const Communicator& world, const std::string& text,
                               std::uint64_t seed);

}  // namespace t2t
