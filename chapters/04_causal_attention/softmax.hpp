// Softmax: a row of scores becomes a row of weights that are not negative and sum to 1.
//
//   weights[t,s] = exp(scores[t,s] − highest[t]) / Σ over j of exp(scores[t,j] − highest[t])
//
// Subtracting each row's highest score does not change the weights, and it keeps exp from
// overflowing: in float32 exp(x) is infinite for x above about 88.72. A score of −infinity gets
// weight 0: that is how a mask works. Bridle 1990, "Training stochastic model recognition
// algorithms as networks". Chapter 09 turns logits into probabilities with it; chapter 11 computes
// it a block of scores at a time.
#pragma once

#include "tensor.hpp"

namespace t2t {

/// The formula along the last axis, for the scores of one head or of H heads at once.
/// Throws std::invalid_argument when all scores of a row are −infinity, and names the first such
/// row: row t of head h as row h·T + t. A row with a NaN or +infinity becomes all NaN.
Tensor<2> softmax(const Tensor<2>& scores);  // [T, S]
Tensor<3> softmax(const Tensor<3>& scores);  // [H, T, S]

/// The row kernel, in place: x becomes softmax(scale · x), for a scale above 0. Returns false and
/// leaves x as it was when all of x is −infinity. A row with a NaN or +infinity becomes all NaN.
/// Never throws, so that parallel loops may call it.
bool softmax_row(Row x, float scale = 1);

/// The middle part of softmax_row: x[s] becomes exp(scale · (x[s] − highest)), where no x[s] is
/// above highest. Each is accurate to 2 units in the last place, and 0 where scale · (x[s] −
/// highest) is below about −87.7. Returns the sum of the new numbers, of a row longer than
/// longest_run (lanes.hpp) as the sum of its halves' sums. Never throws.
float exp_and_sum(Row x, float scale, float highest);

/// softmax_row for every row, shared among the threads. Allocates nothing. Throws as softmax does,
/// after the other rows are done; of several rows that are all −infinity it names one, not always
/// the first.
void softmax_rows(Matrix x);  // [T, S]

}  // namespace t2t
