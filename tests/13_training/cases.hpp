// What several of chapter 13's test files need: PyTorch's training, and batches.
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

}  // namespace t2t
