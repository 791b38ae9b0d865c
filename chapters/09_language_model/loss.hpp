// The loss of a language model: how surprised it is by what comes next.
//
//   loss = mean over t of −ln softmax(logits[t])[ids[t + 1]]
//
// In nats; e to this power is the perplexity. Chapter 10 measures a text with it, 13 trains by it.
#pragma once

#include <span>

#include "tensor.hpp"

namespace t2t {

/// The mean of −ln p(ids[t + 1] | ids[0 … t]) over the T − 1 tokens that have a token before them.
/// Throws std::invalid_argument for fewer than two ids, for one outside [0, V) and on other shapes.
double next_token_loss(ConstMatrix logits,         // [T, V]
                       std::span<const int> ids);  // [T]

}  // namespace t2t
