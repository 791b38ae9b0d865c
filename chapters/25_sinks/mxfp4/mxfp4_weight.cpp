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

  void product(ConstMatrix x, Matrix y) const override {
    if (x.rows == 1) return multiply_row(x.row(0), y.row(0));
    multiply_rows(x, y);
  }
  void row(std::size_t r, Row to) const override {
    unpack_mxfp4_row(&blocks_[r * (cols / mxfp4_numbers) * mxfp4_bytes], to);
  }

 private:
  void multiply_row(ConstRow x, Row y) const;
  void multiply_rows(ConstMatrix x, Matrix y) const;

  std::vector<std::uint8_t> blocks_;  // [rows, cols/32] of 17 bytes
};

/// One token: each row becomes floats, in the nearest cache, and is multiplied before the next.
void Mxfp4Weight::multiply_row(ConstRow x, Row y) const {
  constexpr std::size_t together = 16;  // rows of a task
  static thread_local std::vector<float> memory;
  memory.resize(std::max(memory.size(), thread_count() * cols));
  float* const all_floats = memory.data();  // of this thread, and used by all
  for_each_task((rows + together - 1) / together, together * cols,
                [&](std::size_t i, std::size_t thread) {
                  const Row floats(all_floats + thread * cols, cols);
                  const std::size_t end = std::min(rows, (i + 1) * together);
                  for (std::size_t r = i * together; r < end; ++r) {
                    row(r, floats);
                    matvec({floats.data(), 1, cols, cols}, x, y.subspan(r, 1));
                  }
                });
}

/// Many tokens: 64 rows become floats at a time, and BLAS multiplies them.
void Mxfp4Weight::multiply_rows(ConstMatrix x, Matrix y) const {
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
