// Masked language modelling: some tokens of a text are hidden, and learned from the tokens before
// and after them. Devlin et al. 2018, "BERT: Pre-training of Deep Bidirectional Transformers".
//
// BERT hides 15 of 100 tokens, leaves a tenth of these as they were and puts other tokens in place
// of another tenth; here all of them are hidden.
#pragma once

#include <cstdint>

#include "13_training/backward/model_backward.hpp"

namespace t2t {

/// Stands where a token is hidden. No text has this byte.
constexpr int hidden_token = 0;

/// Hides a share of the batch's tokens, others with each seed. Their targets become the hidden
/// tokens themselves, and all other targets not_learned. Where the target is not_learned before,
/// nothing is hidden. Throws std::invalid_argument unless share is above 0 and at most 1.
void hide_tokens(Batch& batch, float share, std::uint64_t seed);

}  // namespace t2t
