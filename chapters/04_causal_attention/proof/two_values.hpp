// Why several heads: a task that two heads solve to within rounding. No single head solves it
// exactly, and it comes near only with huge values.
//
// One token asks, and two others answer, each with a number: a and b. The asking token needs both
// numbers, each in a channel of its own. A head returns one mean over the two tokens, so it can
// return a, or b, or something between the two. The weights here are written by hand; nothing is
// trained.
//
// Proof that one head is never exactly right for all of (0, 0), (1, 1), (1, 0) and (0, 1), whatever
// its weights are, if the asking token reads only these two. A score is linear in the vector of the
// token that is read, so it is the sum of a part from the token's mark (first or second) and a part
// from its number. Equal numbers raise both scores equally, so (0, 0) and (1, 1) have the same
// attention weights, w and 1 − w. Let P and Q be what the marks add to the answer, and U what a
// number of 1 adds. Then w·P + (1 − w)·Q = (0, 0), and (0, 0) + U = (1, 1). So U is (1, 1). As w is
// not 0, P is a multiple of Q, and both lie on one line through (0, 0).
//
// For (1, 0), with weights w₁ and 1 − w₁, the point w₁·P + (1 − w₁)·Q of that line has to be
// (1, 0) − w₁·U = (1 − w₁, −w₁). For (0, 1), with w₂ and 1 − w₂, the point w₂·P + (1 − w₂)·Q has to
// be (0, 1) − (1 − w₂)·U = (w₂ − 1, w₂). Both lie on one line through (0, 0) only if w₁ = w₂. But
// then they are one point, while (1 − w₁, −w₁) and (w₁ − 1, w₁) are opposite and not (0, 0).
#pragma once

#include "04_causal_attention/multi_head.hpp"

namespace t2t {

/// The two tokens that answer. Channel 0 marks the token that asks, channels 1 and 2 mark the first
/// and the second that answer, and channel 3 holds a number: [2, 4].
Tensor<2> answering_tokens(float a, float b);

/// Two heads of 2 channels. Head 0 attends to the first token, head 1 to the second: its score is
/// 40 / √2 = 28 above the other's, and e^−28 is negligible compared with 1 in float32.
AttentionWeights weights_of_two_heads();

/// One head of 4 channels, whose scores for the two tokens are these. It writes the mean number
/// that it finds to both channels of the answer.
AttentionWeights weights_of_one_head(float first_score, float second_score);

/// One head of 4 channels that is wrong by no more than error, above 0 and below 1/2, where a and b
/// are 0 or 1. The numbers shift its weights from 1/2 by error, and values of 0.25 / error make an
/// answer of that shift.
AttentionWeights weights_of_one_head_near(float error);

/// What attention with H heads returns to the asking token: channels 0 and 1 of out, [2]. The right
/// answer is (a, b). x is the asking token (1, 0, 0, 0), memory the two that answer; there is no
/// mask. Throws as multi_head_attention does.
Tensor<1> two_values(float a, float b, const AttentionWeights& weights, std::size_t H);

}  // namespace t2t
