// What the kernels of the experts refuse, and how many tiles they launch. This file runs on the
// host.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>

#include "11_flash_attention/kernels/rows/row_kernels.hpp"
#include "14_mixture_of_experts/kernels/kernels.hpp"
#include "shapes.hpp"

namespace t2t {

namespace {

void expect_expert_rows(const ExpertRows& rows) {
  expect_size("T", rows.T);
  expect_size("k", rows.k);
  expect_size("E", rows.E);
  const long choices = long(rows.T) * rows.k, most = std::numeric_limits<int>::max();
  expect(choices <= most, "T·k", "at most " + std::to_string(most), choices);
  expect_device("begin", rows.begin);
  expect_device("choices", rows.choices);
}

/// A grid has at most 65535 blocks along y, each of which computes `columns` columns.
void expect_width(const char* name, int got, int columns) {
  const int most = 65535 * columns;
  expect_size(name, got);
  expect(got % 8 == 0, name, "a multiple of 8", got);
  expect(got <= most, name, "at most " + std::to_string(most), got);
}

}  // namespace

void expect_products(const ExpertRows& rows, int C, int F) {
  expect_expert_rows(rows);
  expect_width("C", C, 128);  // two tiles of 64
  expect_width("F", F, 64);
}

void expect_tensor(const char* name, const void* memory) {
  expect_device(name, memory);
  const std::uintptr_t past = reinterpret_cast<std::uintptr_t>(memory) % 16;
  expect(past == 0, name, "an address that is a multiple of 16", past);
}

unsigned most_tiles(const ExpertRows& rows, int tile_rows) {
  // An expert with n rows has (n + tile_rows − 1) / tile_rows tiles at most, and no more than n.
  const long choices = long(rows.T) * rows.k;
  return unsigned(std::min(choices, (choices + long(rows.E) * (tile_rows - 1)) / tile_rows));
}

}  // namespace t2t
