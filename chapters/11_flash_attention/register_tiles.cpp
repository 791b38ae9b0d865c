#include "11_flash_attention/register_tiles.hpp"

#include "lanes.hpp"

namespace t2t {

static constexpr std::size_t W = Lanes::size;

// AVX2 has 16 vector registers, of 8 floats each: 4 · 3 sums leave four. AVX-512 and NEON have 32.
static constexpr std::size_t tile_rows = W == 8 ? 4 : 8;
static constexpr std::size_t tile_registers = 3;

/// A matrix read one element at a time: element (i, c) is at[i · row_step + c · col_step].
struct Numbers {
  const float* at;
  std::size_t row_step, col_step;

  Numbers rows_from(std::size_t i) const { return {at + i * row_step, row_step, col_step}; }
};

/// Loads a register that is used several times. The empty asm hides where it comes from: GCC, when
/// it tunes for AMD's Zen, would read memory again at each use, and the reads would take longer
/// than the products.
static Lanes load_once(const float* from) {
  Lanes::register_type x = Lanes::load_unaligned(from);
#if defined(__x86_64__)
  asm("" : "+v"(x));
#endif
  return Lanes(x);
}

/// A tile of y at its first element. If `kept` is null, y is overwritten; otherwise y is multiplied
/// by it first. Inlined, it is compiled for each caller's null and steps.
template <std::size_t rows, std::size_t registers>
[[gnu::always_inline]] static inline void tile(Numbers a, ConstMatrix x, const float* kept,
                                               float* y, std::size_t stride) {
  Lanes sums[rows][registers];
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t r = 0; r < registers; ++r)
      sums[i][r] =
          kept ? Lanes::load_unaligned(kept + r * W) * Lanes::load_unaligned(y + i * stride + r * W)
               : Lanes(0);

  for (std::size_t c = 0; c < x.rows; ++c) {
    Lanes of_x[registers];
    for (std::size_t r = 0; r < registers; ++r) of_x[r] = load_once(x.data + c * x.stride + r * W);
#pragma GCC unroll 8
    for (std::size_t i = 0; i < rows; ++i) {
      const Lanes of_a(a.at[i * a.row_step + c * a.col_step]);
      for (std::size_t r = 0; r < registers; ++r)
        sums[i][r] = xsimd::fma(of_a, of_x[r], sums[i][r]);
    }
  }

  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t r = 0; r < registers; ++r) sums[i][r].store_unaligned(y + i * stride + r * W);
}

/// Tiles of `rows` rows below one another; the rest is done with half as many, and so on.
template <std::size_t rows, std::size_t registers>
[[gnu::always_inline]] static inline void strip(Numbers a, ConstMatrix x, const float* kept,
                                                Matrix y) {
  std::size_t i = 0;
  for (; i + rows <= y.rows; i += rows)
    tile<rows, registers>(a.rows_from(i), x, kept, y.row(i).data(), y.stride);
  if constexpr (rows > 1)
    if (i < y.rows) strip<rows / 2, registers>(a.rows_from(i), x, kept, y.rows_from(i, y.rows - i));
}

/// Strips of 3 registers side by side, and one of 2 or 1 for the rest.
static void strips(Numbers a, ConstMatrix x, const float* kept, Matrix y) {
  for (std::size_t r = 0; r < y.cols; r += tile_registers * W) {
    const std::size_t cols = std::min(tile_registers * W, y.cols - r);
    const ConstMatrix of_x = x.cols_from(r, cols);
    const Matrix of_y = y.cols_from(r, cols);
    const float* of_kept = kept ? kept + r : nullptr;
    if (cols == 3 * W) strip<tile_rows, 3>(a, of_x, of_kept, of_y);
    if (cols == 2 * W) strip<tile_rows, 2>(a, of_x, of_kept, of_y);
    if (cols == W) strip<tile_rows, 1>(a, of_x, of_kept, of_y);
  }
}

void multiply_tiles(ConstMatrix a, ConstMatrix x, Matrix y) {
  strips({a.data, a.stride, 1}, x, nullptr, y);
}

void add_transposed_tiles(ConstMatrix a, ConstMatrix x, ConstRow kept, Matrix y) {
  strips({a.data, 1, a.stride}, x, kept.data(), y);
}

}  // namespace t2t
