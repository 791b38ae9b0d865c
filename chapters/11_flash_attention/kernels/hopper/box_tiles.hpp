// What rungs 6 to 10 copy: tiles of rows of one head, which TMA (bulk_copy.hpp) brings to shared
// memory whole, and the rings of stages that they land in. A tile is [D/64][rows][64], with the
// chunks of each row swizzled as in async_tiles.hpp.
#pragma once

#include "11_flash_attention/kernels/tile_checks.hpp"
#include "cuda/bulk_copy.hpp"
#include "cuda/kernel.hpp"

namespace t2t {

/// How TMA finds the rows of a call's tensors. Kernels take it as `const __grid_constant__
/// CallMaps`.
struct CallMaps {
  TensorMap q, k, v;
};
/// For tiles of so many queries, and of so many keys and values. Throws std::invalid_argument when
/// a stride is 0.
CallMaps call_maps(const AttentionCall<bf16>& call, int queries, int keys);
TensorMap out_map(const AttentionCall<bf16>& call, int queries);

/// Throw std::runtime_error, with the kernel's name, unless the GPU has the instructions: TMA from
/// compute capability 9.0 on, products of a warpgroup on 9.0 alone.
void expect_bulk_copies(const char* kernel);
void expect_warpgroups(const char* kernel);

/// A tile of queries from query `first` on, of head h of sequence b. Their keys take `steps` tiles.
struct QueryTile {
  int first, h, g, b, steps;
};
/// Number `number` of the tiles·B·H tiles that hold `queries` queries each. The last tiles of all
/// heads, which see the most keys under a causal mask, come first.
template <int queries, int keys>
__device__ __forceinline__ QueryTile query_tile(const AttentionCall<bf16>& call, int tiles,
                                                int number) {
  const int heads = call.B * call.H, head = number % heads, h = head % call.H;
  const int first = (tiles - 1 - number / heads) * queries;
  const int seen = keys_seen(call, min(first + queries, call.T) - 1);
  return {first, h, h / (call.H / call.G), head / call.H, (seen + keys - 1) / keys};
}

/// Step i of a ring of stages uses stage i % stages. mbarrier_wait(full[stage], parity) waits for
/// its tiles, and mbarrier_wait(empty[stage], parity ^ 1) until the step that used the stage last
/// has released it. Nothing used it before the first round: that wait ends at once, since a new
/// barrier counts as one whose phase of parity 1 has ended.
template <int stages>
struct RingStep {
  int stage, parity;
  __device__ __forceinline__ explicit RingStep(int step)
      : stage(step % stages), parity(step / stages % 2) {}
};

}  // namespace t2t
