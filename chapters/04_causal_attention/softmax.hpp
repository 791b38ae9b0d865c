// Softmax: a row of scores becomes a row of weights, none negative, that sum to 1.
//
//   weights[t,s] = exp(scores[t,s] − highest[t]) / Σ over j of exp(scores[t,j] − highest[t])
//
// Taking each row's highest score away changes nothing on paper, and keeps exp from overflowing: in
// float32 exp(89) is infinite. A score of −infinity gets weight 0: that is how a mask works.
// Bridle 1990, "Training stochastic model recognition algorithms as networks". Chapter 09 turns
// logits into probabilities with it, chapter 11 takes it apart.
#pragma once

#include "tensor.hpp"

namespace t2t {

/// The formula, along the last axis: of one head's scores, or of H heads' at once.
/// Throws std::invalid_argument, naming the row, when a row has nothing above −infinity.
Tensor<2> softmax(const Tensor<2>& scores);  // [T, S]
Tensor<3> softmax(const Tensor<3>& scores);  // [H, T, S]

/// The same of one row, in place, a vector register at a time: x becomes softmax(scale · x), for a
/// scale above 0. Returns false, with x untouched, when x has nothing above −infinity.
/// Never throws, so that parallel loops may call it.
bool softmax_row(Row x, float scale = 1);

/// Its middle part: x[s] becomes exp(scale · (x[s] − highest)), with no x[s] above highest. Returns
/// the sum of these. Never throws either.
float exp_and_sum(Row x, float scale, float highest);

/// Each row in place, several at once. Throws as softmax does; the other rows are done then.
void softmax_rows(Matrix x);  // [T, S]

}  // namespace t2t
