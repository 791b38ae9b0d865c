// The backward pass of a product with weights, y = x·Wᵀ + b: the model's projections and its head.
//
//   dx = dy·W        dW = dyᵀ·x        db[o] = Σ over t of dy[t,o]
//
// In this chapter dx stands for the gradient of the loss with respect to x: how much the loss grows
// when an element of x grows by a little, divided by that little. It has the shape of x. A weight
// serves all tokens, so its gradient is a sum over them, and each call adds to it: a batch may come
// in parts, and a tied table is used in two places. Rumelhart et al. 1986, "Learning
// representations by back-propagating errors".
#pragma once

#include "tensor.hpp"

namespace t2t {

/// dx += dy·W. Allocates nothing, and throws std::invalid_argument when shapes disagree; so do the
/// functions below.
void add_input_gradient(ConstMatrix dy,  // [T, out]
                        ConstMatrix w,   // [out, in]
                        Matrix dx);      // [T, in]

/// dW += dyᵀ·x. An empty dW, of weights that are not learned, stays empty.
void add_weight_gradient(ConstMatrix dy,  // [T, out]
                         ConstMatrix x,   // [T, in]
                         Matrix dw);      // [out, in] or [0, 0]

/// db += the sum of dy's rows. An empty db, for a product without a bias, stays empty.
void add_bias_gradient(ConstMatrix dy,  // [T, out]
                       Tensor<1>& db);  // [out] or [0]

}  // namespace t2t
