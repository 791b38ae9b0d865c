// What a kernel needs in order to copy tiles of a tensor by the hardware (bulk_copy.hpp): where the
// tensor's rows lie in global memory, and how large a tile is. Host code makes a TensorMap for each
// launch and passes it to the kernel as `const __grid_constant__ TensorMap`.
#pragma once

#include <array>
#include <cstdint>

#include "cuda/half_types.hpp"
#ifdef __CUDACC__
#include <cuda.h>  // the type alone; the driver's function is looked up when a map is made
#else
#include "cuda_on_cpu/hopper/tensor_map.hpp"
#endif

namespace t2t {

/// The vectors of all heads: channel d of head h at token t of sequence b is
/// data[b·batch_stride + t·token_stride + h·head_stride + d]. A box is `box_tokens` tokens of one
/// head. In shared memory it is [D/64][box_tokens][64]: rows of 128 bytes, of which each holds 64
/// channels. Chunk c of 16 bytes in row r lies at chunk c XOR r % 8, which is called the swizzle of
/// 128 bytes.
struct HeadRows {
  const bf16* data;
  int B, T, heads, D;
  std::int64_t batch_stride, token_stride, head_stride;
  int box_tokens;
};

#ifdef __CUDACC__
using TensorMap = CUtensorMap;
#endif

/// Throws std::invalid_argument unless D is a multiple of 64, a box has 1 to 256 tokens, no size is
/// 0, and the address and all strides are multiples of 16 bytes; on a GPU also std::runtime_error
/// when the driver refuses.
TensorMap tensor_map(const HeadRows& rows);

/// What the hardware is told of these rows: 5 dimensions. Both builds make their maps from it.
/// Throws as tensor_map does, apart from the driver.
struct MapDimensions {
  std::array<std::int64_t, 5> size, stride;  // strides in bytes; the first is 2
  std::array<int, 5> box;
};
MapDimensions map_dimensions(const HeadRows& rows);

}  // namespace t2t
