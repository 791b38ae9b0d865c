// Dropout: in training some elements of a sublayer's result are dropped, others in each pass, so
// that no weight can rely on a single one of them.
//
//   y[t, c] = 0 with probability p, otherwise x[t, c] / (1 − p)
//
// The division keeps the mean, so that nothing has to change when the model runs without dropout.
// Srivastava et al. 2014, "Dropout: A Simple Way to Prevent Neural Networks from Overfitting"; the
// places are GPT-2's: the embedding, and the results of attention and of the feed-forward network.
// `pass` decides which elements are dropped, so the backward pass draws the same ones again and
// nothing is saved for it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "08_block/fast/trace.hpp"
#include "tensor.hpp"

namespace t2t {

struct Dropout {
  float p = 0;             // share of the elements dropped, in [0, 1)
  std::uint64_t pass = 0;  // another pass drops other elements
};

/// Changes x, a sublayer's result, in place. y = x·mask/(1 − p) has dx = dy·mask/(1 − p), so this
/// is also its own backward pass. The result does not depend on the number of threads. Throws
/// std::invalid_argument unless p is in [0, 1).
void dropout_rows(const Dropout& dropout, Part part, std::size_t layer, Matrix x);

}  // namespace t2t
