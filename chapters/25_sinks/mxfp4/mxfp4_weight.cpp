#include "25_sinks/mxfp4/mxfp4_weight.hpp"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "linalg.hpp"
#include "rows.hpp"

namespace t2t {

/// Blocks of MXFP4 whose sizes and scales have been checked.
class Mxfp4Weight : public PackedWeight {
 public:
  Mxfp4Weight(std::vector<std::uint8_t> blocks, std::size_t rows, std::size_t cols)
      : PackedWeight(rows, cols, blocks.size()), blocks_(std::move(blocks)) {}

  void product(ConstMatrix x, Matrix y) const override;
  void row(std::size_t r, Row to) const override {
    unpack_mxfp4_row(&blocks_[r * (cols / mxfp4_numbers) * mxfp4_bytes], to);
  }

 private:
  std::vector<std::uint8_t> blocks_;  // [rows, cols/32] of 17 bytes
};

/// 64 rows become floats at a time, on all threads, and are multiplied before the next 64.
void Mxfp4Weight::product(ConstMatrix x, Matrix y) const {
  constexpr std::size_t together = 64;
  static thread_local std::vector<float> floats;
  floats.resize(std::max(floats.size(), together * cols));
  for (std::size_t first = 0; first < rows; first += together) {
    const Matrix some(floats.data(), std::min(together, rows - first), cols, cols);
    for_each_row(some.rows, cols, [&](std::size_t r) { row(first + r, some.row(r)); });
    matmul_bt(x, ConstMatrix(some), y.cols_from(first, some.rows));
  }
}

Weight mxfp4_weight(std::span<const std::uint8_t> stored, std::size_t rows, std::size_t cols) {
  expect_mxfp4(stored, rows, cols);
  return Weight(std::make_shared<Mxfp4Weight>(
      std::vector<std::uint8_t>(stored.begin(), stored.end()), rows, cols));
}

}  // namespace t2t
