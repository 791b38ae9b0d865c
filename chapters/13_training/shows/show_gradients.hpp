// Shows that the gradients are right: each tensor's, compared with finite differences of the loss.
#pragma once

#include <cstdint>
#include <vector>

#include "09_language_model/config.hpp"
#include "13_training/backward/model_backward.hpp"

namespace t2t {

/// A model for bytes, small enough to be trained while one watches.
Config small_config(std::size_t C, std::size_t L, std::size_t T);

/// A batch of the text's first windows.
Batch first_batch(const std::vector<int>& ids, std::size_t B, std::size_t T);

void show_gradients(const std::vector<int>& ids, std::uint64_t seed);

}  // namespace t2t
