#include "15_serving/products/batch_invariant.hpp"

#include <algorithm>
#include <memory>
#include <vector>

#include "11_flash_attention/register_tiles.hpp"
#include "lanes.hpp"
#include "rows.hpp"

namespace t2t {

/// Rows of weights that are multiplied at a time: their products stay in the nearest cache.
static constexpr std::size_t rows_together = 32;

/// Some tokens side by side: channel c of token t is at [c, t]. Unfilled registers get zeros.
static Matrix side_by_side(ConstMatrix x, std::vector<float>& memory) {
  const std::size_t W = Lanes::size, R = (x.rows + W - 1) / W * W;
  memory.assign(x.cols * R, 0.0f);
  const Matrix packed(memory.data(), x.cols, R, R);
  for (std::size_t t = 0; t < x.rows; ++t)
    for (std::size_t c = 0; c < x.cols; ++c) packed.row(c)[t] = x.row(t)[c];
  return packed;
}

/// y = x·wᵀ for a few tokens, which all threads share by rows of w.
static void multiply(ConstMatrix x, ConstMatrix w, Matrix y) {
  static thread_local std::vector<float> memory, products;
  const ConstMatrix packed = side_by_side(x, memory);  // [C, R]
  const std::size_t blocks = (w.rows + rows_together - 1) / rows_together;
  const std::size_t of_thread = rows_together * packed.cols;
  products.resize(std::max(products.size(), thread_count() * of_thread));
  float* const all_products = products.data();  // of this thread, and used by all
  for_each_task(blocks, rows_together * w.cols, [&](std::size_t i, std::size_t thread) {
    const std::size_t first = i * rows_together, count = std::min(rows_together, w.rows - first);
    const Matrix of_block(all_products + thread * of_thread, count, packed.cols, packed.cols);
    multiply_tiles(w.rows_from(first, count), packed, of_block);
    for (std::size_t n = 0; n < count; ++n)
      for (std::size_t t = 0; t < x.rows; ++t) y.row(t)[first + n] = of_block.row(n)[t];
  });
}

class BatchInvariantWeight : public PackedWeight {
 public:
  explicit BatchInvariantWeight(Tensor<2> w)
      : PackedWeight(w.shape(0), w.shape(1), w.size() * sizeof(float)), w_(std::move(w)) {}

  void product(ConstMatrix x, Matrix y) const override {
    const std::size_t together = 3 * Lanes::size;  // a tile's width
    for (std::size_t t = 0; t < x.rows; t += together) {
      const std::size_t count = std::min(together, x.rows - t);
      multiply(x.rows_from(t, count), w_, y.rows_from(t, count));
    }
  }
  void row(std::size_t r, Row to) const override { std::ranges::copy(t2t::row(w_, r), to.begin()); }

 private:
  Tensor<2> w_;  // [rows, cols]
};

Weight batch_invariant(Tensor<2> floats) {
  return Weight(std::make_shared<BatchInvariantWeight>(std::move(floats)));
}

}  // namespace t2t
