// The backward pass of chapter 04's LSTM, through time: from the last token to the first.
//
//   forward                        backward
//   state[t] = o·tanh(cell[t])     do       = dstate[t]·tanh(cell[t])
//                                  dcell[t] = dstate[t]·o·(1 − tanh²(cell[t])) + f[t+1]·dcell[t+1]
//   cell[t]  = f·cell[t−1] + i·g   di       = dcell[t]·g
//                                  df       = dcell[t]·cell[t−1]
//                                  dg       = dcell[t]·i
//
// Each gate is an activation of w_x·x[t] + w_h·state[t−1] + bias. With the gradients of these sums,
// dsum = dgate · the activation's derivative,
//
//   dx[t]        = dsum·w_x
//   dstate[t−1]  = its gradient from the next layer + dsum·w_h
//
// A transformer's backward pass computes all tokens of a sequence at once; this one waits, as the
// forward pass does, for each token's result. Werbos 1990, "Backpropagation Through Time".
#pragma once

#include "04_causal_attention/recurrence/lstm.hpp"
#include "tensor.hpp"

namespace t2t {

/// Adds to the gradients of the cell's weights, and returns the gradient of x, [T, C]. run is
/// lstm's result. Throws std::invalid_argument when shapes disagree.
Tensor<2> lstm_backward(const Tensor<2>& x,  // [T, C]
                        const LstmCell& cell, const LstmStates& run,
                        const Tensor<2>& dstates,  // [T, C]
                        LstmCell& gradients);      // with the cell's shapes

}  // namespace t2t
