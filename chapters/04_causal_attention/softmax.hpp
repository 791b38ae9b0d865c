// Softmax: a row of scores becomes a row of weights that are not negative and sum to 1.
//
//   weights[t,s] = exp(scores[t,s] − highest[t]) / Σ over j of exp(scores[t,j] − highest[t])
//
// Subtracting each row's highest score does not change the weights, and it keeps exp from
// overflowing: in float32 exp(x) is infinite for x above about 88.72. A score of −infinity gets
// weight 0: that is how a mask works. Bridle 1990, "Training stochastic model recognition
// algorithms as networks". fast/softmax_rows.hpp is the form that a model runs; chapter 11 computes
// it a block of scores at a time.
#pragma once

#include "tensor.hpp"

namespace t2t {

/// The formula along the last axis, for the scores of one head or of H heads at once.
/// Throws std::invalid_argument when all scores of a row are −infinity, and names the first such
/// row: row t of head h as row h·T + t. A row with a NaN or +infinity becomes all NaN.
Tensor<2> softmax(const Tensor<2>& scores);  // [T, S]
Tensor<3> softmax(const Tensor<3>& scores);  // [H, T, S]

/// Whether a mask hides the whole row: all of its scores are −infinity.
bool all_masked(ConstRow scores);  // [S]
/// Throws std::invalid_argument for this row. With several heads, rows are numbered across them:
/// h·T + t.
void refuse_masked_row(std::size_t row);

}  // namespace t2t
