// Shows the first check of any training code: a memorized batch.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "09_language_model/fast/model.hpp"
#include "09_language_model/sampling.hpp"

namespace t2t {

/// What a byte model writes after a prompt.
std::string continued(const Model& model, std::span<const int> prompt, std::size_t tokens,
                      const Sampling& sampling, std::uint64_t seed);

void show_overfit(const std::vector<int>& ids, std::uint64_t seed);

}  // namespace t2t
