// Where a tensor of 16-bit floats lies in global memory, for copies of whole tiles by the hardware
// (TMA, sm_90 and later): what CUDA's CUtensorMap says of it, as far as our kernels need it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace t2t {

/// A tensor with the dimensions channel (64 of them), token, group of 64 channels, head and
/// sequence. A box is a tile of box[1] tokens with all channels of a head. In shared memory it has
/// the shape [group][token][64]: rows of 128 bytes. Chunk c of 16 bytes in row r lies at chunk c
/// XOR r % 8, which is called the swizzle of 128 bytes.
struct TensorMap {
  const std::byte* data;
  std::array<std::int64_t, 5> size;    // the first is 64
  std::array<std::int64_t, 5> stride;  // bytes; the first is 2
  std::array<int, 5> box;              // 64, tokens, groups, 1, 1

  std::size_t box_bytes() const { return std::size_t{128} * box[1] * box[2]; }
};

}  // namespace t2t
