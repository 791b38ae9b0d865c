// Who has what of a model that is divided among ranks, by its Config alone.
#pragma once

#include <cstddef>
#include <string>

#include "09_language_model/config.hpp"

namespace t2t {

/// Each rank's heads, hidden channels, tokens and memory. F is divided in units of `unit` channels.
/// Throws as config_of does.
void show_shards(const Config& whole, std::size_t ranks, std::size_t unit = 1);

/// A model with nine query heads and three key heads, SmolLM2-135M, on 1 to 10 ranks: how its heads
/// are divided, and what the fullest rank does and stores.
void show_uneven_heads();

}  // namespace t2t
