// The backward pass of both norms as training runs it: row by row, added to gradients that are
// there already. The tests compare it with the formula in norm_backward.hpp.
//
//   dx += r·(u − x̂·mean(u·x̂))                 RMSNorm, with x̂ = x·r and u = gain·dy
//   dx += r·(u − mean(u) − x̂·mean(u·x̂))       LayerNorm, with x̂ = (x − mean)·r
#pragma once

#include "08_block/norm.hpp"
#include "tensor.hpp"

namespace t2t {

/// Adds to dx and to the gradients, because residuals and batches in parts need sums. The
/// sums are the same for any number of threads, and nothing is allocated. dx must not overlap x or
/// dy. Throws std::invalid_argument when shapes disagree or scratch has fewer than 2 elements for
/// each row.
void add_norm_backward(ConstMatrix x,  // [T, C]
                       const NormWeights& weights, Norm kind, float eps,
                       ConstMatrix dy,          // [T, C]
                       Matrix dx,               // [T, C], added to
                       NormWeights& gradients,  // [C], added to
                       Row scratch);            // [2·T]: each row's mean and r

}  // namespace t2t
