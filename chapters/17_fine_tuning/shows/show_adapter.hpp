// What an adapter costs, and what a small model learns and forgets through one.
#pragma once

#include <cstdint>
#include <string>

#include "tensor.hpp"

namespace t2t {

/// Trained parameters of SmolLM2-135M, and the memory for training them, by rank.
void show_adapter_sizes();

/// Trains a small model on the text, then teaches it a few lines of Latin: through adapters of
/// several ranks, and with all of its weights. Shows the losses of the Latin and of held-out text
/// in nats per byte, and returns them, [what learns, 2].
Tensor<2> show_small_adapters(const std::string& text, std::uint64_t seed);

}  // namespace t2t
