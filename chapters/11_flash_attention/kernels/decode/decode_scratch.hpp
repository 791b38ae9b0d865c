// Device memory in which the blocks of one decode meet: their results, and counters of what has
// arrived. Runs on the host; chapter 15 uses it, too.
#pragma once

#include <cstddef>

#include "cuda/device.hpp"

namespace t2t {

constexpr int packed_rows = 16;  // rows of queries of a block
constexpr int packed_tiles(int rows) { return (rows + packed_rows - 1) / packed_rows; }

/// How much of it a call needs.
struct DecodeSizes {
  std::size_t floats, counters;
};

/// The memory. Any calls may use it one after another, also recorded ones, but no two at once. The
/// counters are 0 when it is made, and each launch leaves them at 0.
struct DecodeScratch {
  explicit DecodeScratch(const DecodeSizes& sizes);

  DeviceBuffer<float> results;
  DeviceBuffer<unsigned> arrived;
};

/// Throws std::invalid_argument if the scratch is smaller than a call needs: "floats of scratch:
/// wanted at least 520, got 65".
void expect_room(const DecodeScratch& scratch, const DecodeSizes& needed);

}  // namespace t2t
