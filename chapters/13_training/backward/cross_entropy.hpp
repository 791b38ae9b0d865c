// The loss of chapter 09 with its gradient. With p = softmax(logits[t]) and the token that follows,
// target[t]:
//
//   loss[t] = −ln p[target]        dlogits[t,v] = (p[v] − 1 where v is the target) · scale
//
// Each logit is pushed down by its probability, and the target's is pushed up by 1: a row's
// gradients sum to 0. A step's loss is a mean over all tokens to be learned: scale is one over
// their number in the whole batch.
#pragma once

#include <span>

#include "tensor.hpp"

namespace t2t {

/// A target that is not to be learned: a token of the question that a chat model is asked, or what
/// fills up a short sequence.
constexpr int not_learned = -1;

/// Overwrites logits by their gradients, and returns the sum of the losses, in nats: the same for
/// any number of threads. Allocates nothing. Rows whose target is not_learned add nothing to the
/// loss and get gradients of 0. Throws std::invalid_argument when shapes disagree, if losses is
/// shorter than T, and for another target outside [0, V).
double cross_entropy_rows(Matrix logits,                 // [T, V], become dlogits
                          std::span<const int> targets,  // [T]
                          float scale,
                          std::span<double> losses);  // [T] or longer, scratch: each row's loss

/// How many targets are to be learned.
std::size_t count_learned(std::span<const int> targets);

}  // namespace t2t
