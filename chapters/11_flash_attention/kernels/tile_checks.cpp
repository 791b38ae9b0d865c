// What the kernels with tiles refuse. This file runs on the host.
#include "11_flash_attention/kernels/tile_checks.hpp"

#include <cstdint>

#include "shapes.hpp"

namespace t2t {

void expect_tile_width(int D) { expect(D == 64 || D == 128, "D", "64 or 128", D); }

void expect_rows(const char* name, const void* rows, const Strides& strides, std::size_t bytes) {
  expect_device(name, rows);
  const std::size_t first = reinterpret_cast<std::uintptr_t>(rows) % 16;
  expect(first == 0, name, "rows that begin at multiples of 16 bytes", first);
  for (const long stride : {strides.batch, strides.token, strides.head})
    expect(stride * long(bytes) % 16 == 0, name, "rows that begin at multiples of 16 bytes",
           double(stride) * double(bytes));
}

int query_tiles(int T, int heads, int queries) {
  const long tiles = (long{T} + queries - 1) / queries;
  expect(tiles * heads < 1L << 31, "tiles of queries, times B·H", "below 2147483648",
         double(tiles * heads));
  return int(tiles);
}

}  // namespace t2t
