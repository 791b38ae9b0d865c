// The products of all experts in one launch, on the tensor cores.
//
// The idea: with a launch for each expert, most of the GPU would be idle, since most experts have
// few rows. So the rows are cut into tiles of up to 64 rows of one expert, and a block finds its
// tile itself: the prefix sums over the experts' numbers of tiles say whose tile number blockIdx.x
// is. The host knows only how many choices and experts there are. It launches as many blocks as
// there can be tiles, and those without a tile return at once.
//
// A block multiplies its rows with two tiles of weights. For hidden they are the same rows of
// w_gate and w_up, so that a thread has both sums of a hidden element, and applies silu in its
// registers. For results they are 128 rows of w_down. The rows of x are gathered while they are
// copied to shared memory. The next step's tiles are copied while this step's are multiplied.
//
// Blocks that start one after another have the same columns of different tiles of rows. The tiles
// of one expert therefore share its weights while these are in L2, and each weight is read from
// memory once. Rows are read again for each tile of columns, from L2 if they fit it. Measured on an
// H100: 207 to 266 TFLOP/s for hundreds of rows of each expert and more, and 84 to 88 % of a read's
// bytes per second for 16 tokens.
#include "14_mixture_of_experts/kernels/expert_products.hpp"
#include "14_mixture_of_experts/kernels/expert_tiles.hpp"
#include "14_mixture_of_experts/kernels/kernels.hpp"

namespace t2t {

namespace {

// [kernel]
/// The grid is [most tiles of rows, tiles of columns]. An H100 has shared memory for 4 blocks on
/// each multiprocessor: registers shall suffice for them.
template <class Product>
__global__ void __launch_bounds__(product_threads, 4)
    grouped_product(Product product, const int* begin, int E) {
  T2T_DYNAMIC_SHARED(ExpertTiles, tiles);  // [2]
  const RowTile tile = row_tile<tile_rows>(begin, E, blockIdx.x);
  if (tile.rows == 0) return;
  const int first_out = blockIdx.y * (tile_weights + Product::apart);
  const bf16* rows[copied_rows];
  for (int i = 0; i < copied_rows; ++i) {
    const int r = (threadIdx.x + i * product_threads) / 8;
    rows[i] = product.row(tile.first + min(r, tile.rows - 1));
  }

  ExpertSums sums = {};
  copy_tiles(tiles[0], product, rows, tile, 0, first_out);
  for (int column = 0, now = 0; column < product.in; column += depth, now = 1 - now) {
    wait_for_copies<0>();
    __syncthreads();  // this step's tiles are here, and all warps are done with the last step's
    if (column + depth < product.in)
      copy_tiles(tiles[1 - now], product, rows, tile, column + depth, first_out);
    multiply_tiles(sums, tiles[now], tile.rows);
  }

  const int lane = threadIdx.x % 32, out = first_out + threadIdx.x / 32 * 16 + lane % 4 * 2;
#pragma unroll
  for (int s = 0; s < strips; ++s)
    for (int half = 0; half < 2; ++half) {
      const int r = 16 * s + 8 * half + lane / 4;
      if (r >= tile.rows) continue;
      for (int n = 0; n < 2; ++n)
        product.store(product.target(tile.first + r), out + 8 * n, sums[s][0][n] + 2 * half,
                      sums[s][1][n] + 2 * half);
    }
}
// [/kernel]

template <class Product>
void launch(const ExpertRows& rows, const Product& product) {
  constexpr int columns = tile_weights + Product::apart;
  const dim3 grid(most_tiles(rows, tile_rows), (unsigned(product.out) + columns - 1) / columns);
  T2T_LAUNCH(grouped_product<Product>, grid, dim3(product_threads), 2 * sizeof(ExpertTiles),
             product, rows.begin, rows.E);
}

}  // namespace

void launch_expert_hidden(const ExpertRows& rows, const bf16* x, const bf16* w_gate,
                          const bf16* w_up, int C, int F, bf16* hidden) {
  expect_products(rows, C, F);
  expect_tensor("x", x);
  expect_tensor("w_gate", w_gate);
  expect_tensor("w_up", w_up);
  expect_tensor("hidden", hidden);
  launch(rows, HiddenProduct{C, F, rows.choices, rows.k, x, w_gate, w_up, hidden});
}

void launch_expert_results(const ExpertRows& rows, const float* weights, const bf16* hidden,
                           const bf16* w_down, int C, int F, float* results) {
  expect_products(rows, C, F);
  expect_tensor("weights", weights);
  expect_tensor("hidden", hidden);
  expect_tensor("w_down", w_down);
  expect_tensor("results", results);
  launch(rows, ResultProduct<tile_weights>{F, C, rows.choices, weights, hidden, w_down, results});
}

}  // namespace t2t
