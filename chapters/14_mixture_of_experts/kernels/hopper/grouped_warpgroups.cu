// The products of all experts in one launch, by products of a warpgroup: grouped_product.cu for
// Hopper.
//
// Changed from grouped_product.cu: a block multiplies 128 rows of one expert, not 64, with two
// tiles of 128 rows of weights, not of 64. Each byte that comes from L2 thus serves 85 operations
// instead of 43. The sums take 128 registers of each thread of two warpgroups, the consumers, which
// multiply by wgmma, straight from shared memory. A third warpgroup, the producer, copies into a
// ring of 4 stages and gives registers to the consumers (expert_ring.hpp). A tile of at most 64
// rows has one consumer.
//
// Tiles of rows come in bands of 16. Blocks that start one after another take all columns of a
// band before those of the next band. A band's rows thus stay in L2, and weights are read from
// memory once for each band of their expert's. In grouped_product.cu's order, all rows for one tile
// of columns after another, the rows of 16,384 tokens of Mixtral do not fit L2. Its gate and up
// products would then read 30 GB from memory, and in bands they read about 6 GB.
//
// Predicted for an H100 and 16,384 tokens: 570 TFLOP/s for Mixtral and 420 for Qwen3-30B-A3B, where
// grouped_product.cu has 266 and 220. For few tokens, which take as long as reading the weights,
// nothing is gained. Never run on a GPU.
#include <algorithm>

#include "14_mixture_of_experts/kernels/expert_products.hpp"
#include "14_mixture_of_experts/kernels/hopper/expert_ring.hpp"
#include "14_mixture_of_experts/kernels/kernels.hpp"

namespace t2t {

namespace {

constexpr int ring_threads = 3 * group_threads;

#if T2T_WARPGROUPS
constexpr int band = 16;  // tiles of rows

struct BlockPlace {
  int row_tile, column_tile;
};
/// The tiles that this block takes. The grid is [most tiles of rows, tiles of columns].
__device__ __forceinline__ BlockPlace place_of_block() {
  const long number = long(blockIdx.y) * gridDim.x + blockIdx.x;
  const int first = int(number / (long(band) * gridDim.y)) * band;
  const int rows = min(band, int(gridDim.x) - first),
            in_band = int(number - long(first) * gridDim.y);
  return {first + in_band % rows, in_band / rows};
}
#endif

template <class Product>
__global__ void __launch_bounds__(ring_threads, 1)
    grouped_warpgroups(const __grid_constant__ WeightMaps maps, Product product, const int* begin,
                       int E) {
#if T2T_WARPGROUPS
  T2T_DYNAMIC_TILES(ExpertStage, stages);
  __shared__ ExpertBarriers barriers;
  const BlockPlace place = place_of_block();
  const RowTile tile = row_tile<ring_rows>(begin, E, place.row_tile);
  if (tile.rows == 0) return;
  const int first_out = place.column_tile * (ring_columns + Product::apart);
  barriers.init(tile.rows > 64 ? 2 : 1);

  // [roles]
  if (current_warpgroup() == 0) {
    give_registers<72>();
    fill_ring(stages, barriers, maps, product, tile, first_out);
    return;
  }

  const int first_row = (current_warpgroup() - 1) * 64;
  if (first_row >= tile.rows) return;
  take_registers<216>();
  RingSums sums = {};
  const int steps = (product.in + ring_channels - 1) / ring_channels;
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    const RingStep<ring_stages> at(step);
    mbarrier_wait(barriers.full[at.stage], at.parity);
    issue_stage(sums, stages[at.stage], first_row);
    if (step == 0) continue;
    wait_for_products<1>(sums[0], sums[1]);  // the last step's have ended
    arrive_for_warp(barriers.empty[(step - 1) % ring_stages]);
  }
  wait_for_products<0>(sums[0], sums[1]);
  // [/roles]

  const int lane = threadIdx.x % 32, from = first_row + first_row_of_warp() + lane / 4;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int r = from + 8 * half;
    if (r >= tile.rows) continue;  // a row of another expert, or of none
    const auto to = product.target(tile.first + r);
    for (int n = 0; n < ring_columns / 8; ++n)
      product.store(to, first_out + 8 * n + lane % 4 * 2, sums[0][n] + 2 * half,
                    sums[1][n] + 2 * half);
  }
#endif
}

/// Matrices [E, out, in]. With fewer than 64 channels, no tile is copied by the map.
TensorMap weight_map(const bf16* w, int E, int out, int in) {
  return tensor_map({w, E, out, std::max(1, in / ring_channels), ring_channels,
                     std::int64_t{out} * in, in, ring_channels, ring_columns});
}

template <class Product>
void launch(const ExpertRows& rows, const WeightMaps& maps, const Product& product) {
  constexpr int columns = ring_columns + Product::apart;
  const dim3 grid(most_tiles(rows, ring_rows), (unsigned(product.out) + columns - 1) / columns);
  T2T_LAUNCH(grouped_warpgroups<Product>, grid, dim3(ring_threads),
             ring_stages * sizeof(ExpertStage), maps, product, rows.begin, rows.E);
}

}  // namespace

void launch_expert_hidden_warpgroups(const ExpertRows& rows, const bf16* x, const bf16* w_gate,
                                     const bf16* w_up, int C, int F, bf16* hidden) {
  expect_products(rows, C, F);
  expect_tensor("x", x);
  expect_tensor("w_gate", w_gate);
  expect_tensor("w_up", w_up);
  expect_tensor("hidden", hidden);
  expect_warpgroups("grouped_warpgroups");
  launch(rows, {weight_map(w_gate, rows.E, F, C), weight_map(w_up, rows.E, F, C)},
         HiddenProduct{C, F, rows.choices, rows.k, x, w_gate, w_up, hidden});
}

void launch_expert_results_warpgroups(const ExpertRows& rows, const float* weights,
                                      const bf16* hidden, const bf16* w_down, int C, int F,
                                      float* results) {
  expect_products(rows, C, F);
  expect_tensor("weights", weights);
  expect_tensor("hidden", hidden);
  expect_tensor("w_down", w_down);
  expect_tensor("results", results);
  expect_warpgroups("grouped_warpgroups");
  const TensorMap map = weight_map(w_down, rows.E, C, F);
  launch(rows, {map, map},
         ResultProduct<ring_columns>{F, C, rows.choices, weights, hidden, w_down, results});
}

}  // namespace t2t
