// Why several heads: a task that two heads solve and that no single head can.
//
// One token asks, and two others answer, each with a number: a and b. The asking token needs both
// numbers, each in a channel of its own. A head returns one mean over the two tokens, so it can
// bring home a, or b, or something between the two. The weights here are written by hand; nothing
// is trained. The page has the proof that one head fails whatever its weights are, if the asking
// token reads only these two.
#pragma once

#include "04_causal_attention/multi_head.hpp"

namespace t2t {

/// The two tokens that answer. Channel 0 marks the token that asks, channels 1 and 2 mark the first
/// and the second that answer, and channel 3 holds a number: [2, 4].
Tensor<2> answering_tokens(float a, float b);

/// Two heads of 2 channels. Head 0 attends to the first token, head 1 to the second: its score is
/// 40 / √2 = 28 above the other's, and e^−28 is nothing compared with 1 in float32.
AttentionWeights weights_of_two_heads();

/// One head of 4 channels, whose scores for the two tokens are these. It writes the mean number
/// that it finds to both channels of the answer.
AttentionWeights weights_of_one_head(float first_score, float second_score);

/// What attention with H heads brings the asking token: channels 0 and 1 of out, [2]. Wanted is
/// (a, b). x is the asking token (1, 0, 0, 0), memory the two that answer; there is no mask. Throws
/// as multi_head_attention does.
Tensor<1> two_values(float a, float b, const AttentionWeights& weights, std::size_t H);

}  // namespace t2t
