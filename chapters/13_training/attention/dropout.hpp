// Dropout: in training some of the numbers that a part adds to the stream are left out, others in
// each pass, so that no weight can rely on a single one of them.
//
//   y[t, c] = 0 with probability p, otherwise x[t, c] / (1 − p)
//
// The division keeps the mean, so that nothing has to change when the model is used, without
// dropout. Srivastava et al. 2014, "Dropout: A Simple Way to Prevent Neural Networks from
// Overfitting"; the places are those of GPT-2: the embedding, and what attention and the network
// add. Which numbers are left out follows from `pass`, so the backward pass draws the same ones
// again and nothing is kept for it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "08_block/fast/trace.hpp"
#include "tensor.hpp"

namespace t2t {

struct Dropout {
  float p = 0;             // share of the numbers left out, in [0, 1)
  std::uint64_t pass = 0;  // forward passes with other numbers leave out others
};

/// Changes x, a layer's part, in place. y = x·mask/(1 − p) has dx = dy·mask/(1 − p), so this is
/// also its own backward pass. The result does not depend on the number of threads. Throws
/// std::invalid_argument unless p is in [0, 1).
void dropout_rows(const Dropout& dropout, Part part, std::size_t layer, Matrix x);

}  // namespace t2t
