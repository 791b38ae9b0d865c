// A model's answers to sums.
#pragma once

#include <cstdint>
#include <vector>

#include "09_language_model/fast/forward.hpp"
#include "17_fine_tuning/rewards/sums.hpp"

namespace t2t {

/// An answer of at most `most` tokens to each sum, drawn as draw_answers draws, which also says
/// what is refused.
std::vector<Transcript> answers_to(const Model& model, const std::vector<Sum>& asked,
                                   std::size_t most, std::uint64_t seed);

/// Each sum m times, one after the other: a group of answers to each is answers_to(model,
/// repeated(sums, m), …).
std::vector<Sum> repeated(const std::vector<Sum>& sums, std::size_t m);

}  // namespace t2t
