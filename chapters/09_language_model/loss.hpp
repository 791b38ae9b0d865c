// The loss of a language model: how badly it predicts each next token.
//
//   loss = mean over t of −ln softmax(logits[t])[ids[t + 1]]
//
// Its unit is the nat; e to the power of the loss is the perplexity. Chapter 10 measures a model
// with it, and chapter 13 trains by minimizing it.
#pragma once

#include <span>

#include "tensor.hpp"

namespace t2t {

/// The mean of −ln p(ids[t + 1] | ids[0 … t]) over the T − 1 tokens that have a token before them.
/// Throws std::invalid_argument for fewer than two ids, for one outside [0, V) and on other shapes.
double next_token_loss(ConstMatrix logits,         // [T, V]
                       std::span<const int> ids);  // [T]

}  // namespace t2t
