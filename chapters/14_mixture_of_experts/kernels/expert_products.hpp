// What both forms of the experts' products share: which rows a block multiplies, with which
// weights, and what becomes of the sums.
#pragma once

#include <cstddef>

#include "14_mixture_of_experts/kernels/kernels.hpp"
#include "cuda/kernel.hpp"
#include "cuda/tensor_core.hpp"

namespace t2t {

/// Some rows, all of one expert.
struct RowTile {
  int expert, first, rows;
};

/// Tile number `wanted` of up to `most` rows; it has no rows if there are not so many tiles. Of
/// each 32 experts, a lane of the warp counts the tiles of one, and adds the counts of the lanes
/// before it.
template <int most>
__device__ __forceinline__ RowTile row_tile(const int* begin, int E, int wanted) {
  const int lane = threadIdx.x % 32;
  for (int e = lane, before = 0; e - lane < E; e += 32) {
    const int from = e < E ? begin[e] : 0, to = e < E ? begin[e + 1] : 0;
    const int tiles = (to - from + most - 1) / most;
    int sum = tiles;  // becomes the prefix sum
    for (int apart = 1; apart < 32; apart *= 2) {
      const int other = __shfl_up_sync(~0u, sum, apart);
      if (lane >= apart) sum += other;
    }
    // Prefix sums never fall, so those above the wanted number are those of the last lanes.
    const int found = 32 - __popc(__ballot_sync(~0u, before + sum > wanted));
    if (found < 32) {
      const int first = from + (wanted - before - (sum - tiles)) * most;
      const int rows = min(most, to - first);
      return {__shfl_sync(~0u, e, found), __shfl_sync(~0u, first, found),
              __shfl_sync(~0u, rows, found)};
    }
    before += __shfl_sync(~0u, sum, 31);
  }
  return {E, 0, 0};
}

/// hidden = silu(x·w_gateᵀ) ⊙ (x·w_upᵀ)
struct HiddenProduct {
  static constexpr int apart = 0;  // both tiles of weights are for the same columns
  int in, out;                     // C, F
  const int* choices;
  int k;
  const bf16 *x, *w_gate, *w_up;
  bf16* hidden;

  __device__ const bf16* row(int r) const { return x + std::size_t(choices[r] / k) * in; }
  __device__ const bf16* weights(int e, int side, int column) const {
    return (side == 0 ? w_gate : w_up) + (std::size_t(e) * out + column) * in;
  }
  /// Far below zero expf(−x) is infinite, and x / infinity is −0, as it should be.
  __device__ static float silu(float x) { return x / (1 + expf(-x)); }
  /// Where row r is stored.
  __device__ bf16* target(int r) const { return hidden + std::size_t(r) * out; }
  /// Two columns of a row, from the sums of both tiles.
  __device__ void store(bf16* to, int column, const float* gate, const float* up) const {
    if (column >= out) return;
    *reinterpret_cast<uint32_t*>(to + column) =
        pack_bf16(silu(gate[0]) * up[0], silu(gate[1]) * up[1]);
  }
};

/// results = weights ⊙ (hidden·w_downᵀ), each row where its choice is. The second tile of weights
/// is for the columns that are `columns` further on.
template <int columns>
struct ResultProduct {
  static constexpr int apart = columns;
  int in, out;  // F, C
  const int* choices;
  const float* of_choices;  // weights
  const bf16 *hidden, *w_down;
  float* results;

  __device__ const bf16* row(int r) const { return hidden + std::size_t(r) * in; }
  __device__ const bf16* weights(int e, int, int column) const {
    return w_down + (std::size_t(e) * out + column) * in;
  }
  /// Where row r is stored, and the weight of its choice.
  struct Target {
    float* row;
    float weight;
  };
  __device__ Target target(int r) const {
    const int choice = choices[r];
    return {results + std::size_t(choice) * out, of_choices[choice]};
  }
  /// Two columns of each tile.
  __device__ void store(const Target& to, int column, const float* left, const float* right) const {
    const auto [row, weight] = to;
    if (column < out)
      *reinterpret_cast<float2*>(row + column) = make_float2(weight * left[0], weight * left[1]);
    if (column + apart < out)
      *reinterpret_cast<float2*>(row + column + apart) =
          make_float2(weight * right[0], weight * right[1]);
  }
};

}  // namespace t2t
