// A recurrent cell: it reads a sequence one token after the other and keeps what it has read in one
// vector, its state. This is what attention replaced.
//
//   state[t] = tanh(w_x·x[t] + w_h·state[t−1] + bias)        state[−1] = 0
//
// Everything that token t can learn of the tokens before it comes through state[t−1]. Elman 1990,
// "Finding Structure in Time". lstm.hpp adds gates. Used in no later chapter.
#pragma once

#include "random.hpp"
#include "tensor.hpp"

namespace t2t {

struct RecurrentCell {
  Tensor<2> w_x;   // [C, C]
  Tensor<2> w_h;   // [C, C]
  Tensor<1> bias;  // [C]
};

/// w_x from N(0, 1/C), then w_h from N(0, scale²/C); the bias is 0.
RecurrentCell draw_recurrent_cell(std::size_t C, Random& random, float scale = 1);

/// All states, [T, C]. Throws std::invalid_argument when x or a weight has another shape.
Tensor<2> recurrence(const Tensor<2>& x,  // [T, C]
                     const RecurrentCell& cell);

/// The echo of a small change of state 0: its length when it has reached state t, divided by its
/// length at 0, [T]; echo[0] is 1. Lengths are summed in double. change: its direction; all zeros
/// give NaN after echo[0]. This is the derivative itself, not a difference of two runs. A gradient
/// that goes back from t to 0 meets the same factors. Throws as recurrence does.
Tensor<1> recurrence_echo(const Tensor<2>& states,  // [T, C], from recurrence
                          const RecurrentCell& cell,
                          const Tensor<1>& change);  // [C]

}  // namespace t2t
