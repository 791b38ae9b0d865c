// Softmax as a model runs it: in place, a row at a time, in vector registers. The tests compare it
// with the formula in softmax.hpp.
//
//   x[s] = exp(scale·x[s] − scale·highest) / Σ over j of exp(scale·x[j] − scale·highest)
//
// Chapter 09 turns logits into probabilities with it, and 14 a router's scores; 13's loss uses its
// middle part.
#pragma once

#include "04_causal_attention/softmax.hpp"
#include "tensor.hpp"

namespace t2t {

/// The row kernel, in place: x becomes softmax(scale · x), for a scale above 0. Returns false and
/// leaves x as it was when all of x is −infinity. A row with a NaN or +infinity becomes all NaN.
/// Never throws, so that parallel loops may call it.
bool softmax_row(Row x, float scale = 1);

/// The middle part of softmax_row: x[s] becomes exp(scale · (x[s] − highest)), where no x[s] is
/// above highest. Each is accurate to 2 units in the last place, and 0 where scale · (x[s] −
/// highest) is below about −87.7. Returns the sum of the new values; a row longer than longest_run
/// (lanes.hpp) is summed in halves. Never throws.
float exp_and_sum(Row x, float scale, float highest);

/// softmax_row for every row, shared among the threads. Allocates nothing. Throws as softmax does,
/// after the other rows are done; of several rows that are all −infinity it names one, not always
/// the first.
void softmax_rows(Matrix x);  // [T, S]

}  // namespace t2t
