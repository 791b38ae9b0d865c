// A long short-term memory cell (LSTM): a recurrent cell with a second vector, its cell values,
// which gates keep, write and read.
//
//   i, f, o  = sigmoid(w·x[t] + u·state[t−1] + b), with matrices and a bias for each of the three
//   g        = tanh(w·x[t] + u·state[t−1] + b), with its own
//   cell[t]  = f·cell[t−1] + i·g          cell[−1] = state[−1] = 0
//   state[t] = o·tanh(cell[t])
//
// The input gate i says how much of the candidate g is written, the forget gate f how much of the
// old cell value is kept, the output gate o how much is shown. Hochreiter and Schmidhuber 1997,
// "Long Short-Term Memory"; the forget gate: Gers, Schmidhuber and Cummins 2000, "Learning to
// Forget". Chapter 18 trains it beside a transformer.
#pragma once

#include "random.hpp"
#include "tensor.hpp"

namespace t2t {

/// Rows 0 … C − 1 of each belong to i, the next C to f, then g, then o: PyTorch's order.
struct LstmCell {
  Tensor<2> w_x;   // [4C, C]
  Tensor<2> w_h;   // [4C, C]
  Tensor<1> bias;  // [4C]
};

/// w_x, then w_h from N(0, 1/C). The biases are 0, except the forget gate's, which are forget_bias.
LstmCell draw_lstm_cell(std::size_t C, Random& random, float forget_bias);

struct LstmStates {
  Tensor<2> gates;   // [T, 4C]: i, f, g and o, after sigmoid and tanh
  Tensor<2> cells;   // [T, C]
  Tensor<2> states;  // [T, C], what the next layer reads
};

/// Throws std::invalid_argument when x or a weight has another shape.
LstmStates lstm(const Tensor<2>& x,  // [T, C]
                const LstmCell& cell);

/// The echo of a small change of cell[0]: its length when it has reached cell[t], divided by its
/// length at 0, [T]; echo[0] is 1. Lengths are summed in double. The change is followed through the
/// cell, and through the state into the next gates. change: its direction; all zeros give NaN.
/// Throws as lstm does.
Tensor<1> lstm_echo(const LstmStates& run, const LstmCell& cell,
                    const Tensor<1>& change);  // [C]

}  // namespace t2t
