// Batch-invariant matrix products of floats: each sum is added up in one fixed order, whether for
// one row or for many.
//
// The last bits of a sum of floats depend on its order, and a library chooses the order by the
// shape: for one row it keeps several partial sums in registers; for many rows it multiplies tiles,
// whose size depends on the number of rows. The last bits of a sequence's logits therefore change
// with the number of tokens read at the same time, and a near tie between two tokens may then go
// the other way. Here every element of the result is
//
//   y[t,n] = ((x[t,0]·w[n,0] + x[t,1]·w[n,1]) + x[t,2]·w[n,2]) + …
//
// computed with chapter 11's tiles: each token has its own lane of a vector register, so that lanes
// are never added up. Quantized weights (chapter 12) have a fixed order without this. Horace He,
// "Defeating Nondeterminism in LLM Inference", 2025.
#pragma once

#include "weight.hpp"

namespace t2t {

/// The same values as a Weight whose products have a fixed order. Throws std::invalid_argument when
/// there are none.
Weight batch_invariant(Tensor<2> floats);  // [out, in]

}  // namespace t2t
