// The backward pass of both norms of chapter 02. With x̂ = (x − mean)·r, the normed row, where r is
// one over its standard deviation (without the mean in RMSNorm), y = gain·x̂ + bias gives
//
//   u[t,c] = gain[c]·dy[t,c]                            the gradient of x̂
//   dx = r·(u − x̂·mean(u·x̂))                            RMSNorm
//   dx = r·(u − mean(u) − x̂·mean(u·x̂))                  LayerNorm
//   dgain[c] = Σ over t of dy[t,c]·x̂[t,c]               dbias[c] = Σ over t of dy[t,c]
//
// A norm's result does not change when its whole row grows, so no gradient may point along the row:
// the last term removes that component. norm_backward_rows.hpp is the form that training runs.
// Zhang and Sennrich 2019; Ba, Kiros and Hinton 2016.
#pragma once

#include "08_block/norm.hpp"
#include "tensor.hpp"

namespace t2t {

/// The gradients of a norm's input and of its parameters.
struct NormGradients {
  Tensor<2> x;          // [T, C]
  NormWeights weights;  // [C]; the bias LayerNorm's only
};

/// Throws std::invalid_argument when shapes disagree: the gain is [C], and the bias [C] for
/// LayerNorm and empty for RMSNorm.
void expect_norm(ConstMatrix x,  // [T, C]
                 const NormWeights& weights, Norm kind,
                 ConstMatrix dy);  // [T, C]

/// The formula. Throws as expect_norm does.
NormGradients norm_backward(const Tensor<2>& x,  // [T, C], the norm's input
                            const NormWeights& weights, Norm kind, float eps,
                            const Tensor<2>& dy);  // [T, C]

}  // namespace t2t
