// What several test files of 13 and 18 need: PyTorch's training, and batches.
#pragma once

#include <string>

#include "13_training/text/passages.hpp"
#include "files/npy.hpp"
#include "support/lists.hpp"
#include "tensor.hpp"

namespace t2t {

/// What make_training.py wrote.
inline Tensor<2> reference(const std::string& name) {
  return load_npy<2>(T2T_FIXTURES "/training_" + name + ".npy");
}
inline Tensor<1> reference_row(const std::string& name) {
  return load_npy<1>(T2T_FIXTURES "/training_" + name + ".npy");
}
inline Tensor<1> column(const Tensor<2>& x, std::size_t c) { return xt::view(x, xt::all(), c); }

/// 3 texts of 13 tokens below V, with the tokens that follow.
inline Batch three_texts(std::size_t V) {
  Batch batch = make_batch(3, 13);
  Ids ids;
  for (std::size_t n = 0; n < 40; ++n) ids.push_back(int((7 * n * n + 3 * n + 5) % V));
  fill_in_order(batch, ids, 0);
  return batch;
}

/// 400 tokens, in which each is followed by the same one.
inline Ids letters() {
  Ids ids;
  for (int i = 0; i < 400; ++i) ids.push_back(1 + i % 13);
  return ids;
}

}  // namespace t2t
