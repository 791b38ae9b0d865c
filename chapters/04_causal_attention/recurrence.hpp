// A recurrent cell, the foil: what read text before attention did, one token after the other.
//
//   state[t] = tanh(w_x·x[t] + w_h·state[t−1] + bias)        state[−1] = 0
//
// Everything that token t knows of the tokens before it came through the one vector state[t−1].
// Elman 1990, "Finding Structure in Time". (The gates of Hochreiter and Schmidhuber's LSTM, 1997,
// let a state last longer; its steps wait for one another all the same.) Used in no later chapter.
#pragma once

#include "random.hpp"
#include "tensor.hpp"

namespace t2t {

struct RecurrentCell {
  Tensor<2> w_x;   // [C, C]
  Tensor<2> w_h;   // [C, C]
  Tensor<1> bias;  // [C]
};

/// Weights from N(0, 1/C), no bias.
RecurrentCell draw_recurrent_cell(std::size_t C, Random& random);

/// All states, [T, C]. Throws std::invalid_argument when x or a weight has another shape.
Tensor<2> recurrence(const Tensor<2>& x,  // [T, C]
                     const RecurrentCell& cell);

/// What is left of a small change of state 0 when it has come to state t, as a share of its length,
/// [T]. change: its direction, not all zeros. The derivative itself, not a difference of two runs.
Tensor<1> recurrence_echo(const Tensor<2>& states,  // [T, C], from recurrence
                          const RecurrentCell& cell,
                          const Tensor<1>& change);  // [C]

}  // namespace t2t
