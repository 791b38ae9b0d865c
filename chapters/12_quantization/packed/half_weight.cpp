#include "12_quantization/packed/half_weight.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <vector>

#include "12_quantization/packed/registers.hpp"
#include "fetch_ahead.hpp"
#include "linalg.hpp"
#include "rows.hpp"
#include "shapes.hpp"

namespace t2t {

struct HalfRows {
  TensorType type;
  std::size_t rows, cols;
  std::vector<std::uint8_t> bytes;  // [rows, cols], two for each number

  const std::uint8_t* row(std::size_t r) const { return &bytes[2 * r * cols]; }
};

/// An F16, 16 at a time.
static void f16_to_floats(const std::uint8_t* from, Row to) {
  std::size_t c = 0;
  for (; c + 16 <= to.size(); c += 16)
    RegistersHere::store(RegistersHere::halves(from + 2 * c), &to[c]);
  for (; c < to.size(); ++c) to[c] = half_at(from + 2 * c);
}

/// A BF16 is the upper half of a float.
static void bf16_to_floats(const std::uint8_t* from, Row to) {
#pragma omp simd
  for (std::size_t c = 0; c < to.size(); ++c) {
    const std::uint32_t low = from[2 * c], high = from[2 * c + 1];
    to[c] = std::bit_cast<float>(low << 16 | high << 24);
  }
}

static void row_to_floats(const HalfRows& w, std::size_t r, Row to) {
  (w.type == TensorType::f16 ? f16_to_floats : bf16_to_floats)(w.row(r), to);
}

/// One token: each row becomes floats and is multiplied before the next. The threads' memory is
/// made before the loop, in which nothing may throw.
static void multiply_row(ConstRow x, const HalfRows& w, Row y) {
  constexpr std::size_t together = 16;  // rows of a task
  const std::size_t tasks = (w.rows + together - 1) / together;
  static thread_local std::vector<float> memory;
  memory.resize(std::max(memory.size(), thread_count() * w.cols));
  float* const all_floats = memory.data();  // of this thread, and used by all
  for_each_task(tasks, together * w.cols, [&](std::size_t i, std::size_t thread) {
    const Row floats(all_floats + thread * w.cols, w.cols);
    const std::size_t first = i * together, end = std::min(w.rows, first + together);
    for (std::size_t r = first; r < end; ++r) {
      fetch_ahead(w.row(r), 2 * w.cols);
      row_to_floats(w, r, floats);
      matvec({floats.data(), 1, w.cols, w.cols}, x, y.subspan(r, 1));
    }
  });
}

/// Many tokens: some rows become floats at a time, and BLAS multiplies them.
static void multiply_rows(ConstMatrix x, const HalfRows& w, Matrix y) {
  constexpr std::size_t together = 256;
  static thread_local std::vector<float> floats;
  floats.resize(together * w.cols);
  for (std::size_t first = 0; first < w.rows; first += together) {
    const Matrix some(floats.data(), std::min(together, w.rows - first), w.cols, w.cols);
    for_each_row(some.rows, w.cols,
                 [&](std::size_t r) { row_to_floats(w, first + r, some.row(r)); });
    matmul_bt(x, ConstMatrix(some), y.cols_from(first, some.rows));
  }
}

/// Keeps rows of 16 bits as they are stored.
class HalfWeight : public PackedWeight {
 public:
  explicit HalfWeight(HalfRows w)
      : PackedWeight(w.rows, w.cols, w.bytes.size()), w_(std::move(w)) {}

  void product(ConstMatrix x, Matrix y) const override {
    if (x.rows == 1) return multiply_row(x.row(0), w_, y.row(0));
    multiply_rows(x, w_, y);
  }
  void row(std::size_t r, Row to) const override { row_to_floats(w_, r, to); }

 private:
  HalfRows w_;  // [rows, cols]
};

Weight half_weight(TensorType type, std::span<const std::uint8_t> stored, std::size_t rows,
                   std::size_t cols) {
  if (type != TensorType::f16 && type != TensorType::bf16)
    throw std::invalid_argument(fmt::format("type: wanted F16 or BF16, got {}", type_name(type)));
  expect(stored.size() == 2 * rows * cols, "bytes", std::to_string(2 * rows * cols), stored.size());
  return Weight(std::make_shared<HalfWeight>(
      HalfRows{type, rows, cols, std::vector<std::uint8_t>(stored.begin(), stored.end())}));
}

}  // namespace t2t
