// Packed weights for tests: one that computes, and one of which only the size is asked for.
#pragma once

#include <memory>

#include "linalg.hpp"
#include "weight.hpp"

namespace t2t {

/// Stores each float doubled, and counts its products. Both rows and products are halved at the
/// end, which is exact, so that they equal those of the floats bit for bit.
class DoubledWeight : public PackedWeight {
 public:
  DoubledWeight(const Tensor<2>& floats, std::size_t bytes, std::size_t* count = nullptr)
      : PackedWeight(floats.shape(0), floats.shape(1), bytes), twice_(2 * floats), count_(count) {}

  void product(ConstMatrix x, Matrix y) const override {
    if (count_) ++*count_;
    matmul_bt(x, ConstMatrix(twice_), y);
    for (std::size_t t = 0; t < y.rows; ++t)
      for (float& number : y.row(t)) number /= 2;
  }
  void row(std::size_t r, Row to) const override {
    for (std::size_t c = 0; c < to.size(); ++c) to[c] = twice_(r, c) / 2;
  }

 private:
  Tensor<2> twice_;  // [rows, cols]
  std::size_t* count_;
};

inline Weight doubled(const Tensor<2>& floats, std::size_t bytes = 7,
                      std::size_t* count = nullptr) {
  return Weight(std::make_shared<DoubledWeight>(floats, bytes, count));
}

/// Has no numbers: its products and rows stay as they are.
class SizeOfWeight : public PackedWeight {
 public:
  using PackedWeight::PackedWeight;
  void product(ConstMatrix, Matrix) const override {}
  void row(std::size_t, Row) const override {}
};

inline Weight packed_nothing(std::size_t rows, std::size_t cols, std::size_t bytes = 0) {
  return Weight(std::make_shared<SizeOfWeight>(rows, cols, bytes));
}

}  // namespace t2t
