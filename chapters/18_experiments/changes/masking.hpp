// Masked language modelling: some tokens of a sequence are masked, and learned from the tokens
// before and after them. Devlin et al. 2018, "BERT: Pre-training of Deep Bidirectional
// Transformers".
//
// BERT chooses 15 of 100 tokens, leaves a tenth of these as they were and replaces another tenth by
// other tokens; here all chosen tokens are masked.
#pragma once

#include <cstdint>

#include "13_training/backward/model_backward.hpp"

namespace t2t {

/// Replaces a masked token. No text has this byte.
constexpr int hidden_token = 0;

/// Masks a share of the batch's tokens, different ones with each seed. Their targets become the
/// masked tokens themselves, and all other targets not_learned. Where the target was not_learned
/// before, nothing is masked. Throws std::invalid_argument unless share is above 0 and at most 1.
void hide_tokens(Batch& batch, float share, std::uint64_t seed);

}  // namespace t2t
