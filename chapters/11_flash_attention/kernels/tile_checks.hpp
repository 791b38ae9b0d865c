// What kernels with tiles require of a call, beyond expect_call: a width that a tile has, and rows
// that can be read 16 bytes at a time.
#pragma once

#include <cstddef>

#include "04_causal_attention/kernels/attention_call.hpp"

namespace t2t {

/// Throw std::invalid_argument, with the wanted and the given value, unless D is 64 or 128, and
/// unless rows begin at multiples of 16 bytes.
void expect_tile_width(int D);
void expect_rows(const char* name, const void* rows, const Strides& strides, std::size_t bytes);

template <class Number>
void expect_tiles(const AttentionCall<Number>& call) {
  expect_call(call);
  expect_tile_width(call.D);
  expect_rows("q", call.q, call.q_strides, sizeof(Number));
  expect_rows("k", call.k, call.k_strides, sizeof(Number));
  expect_rows("v", call.v, call.v_strides, sizeof(Number));
  expect_rows("out", call.out, call.out_strides, sizeof(Number));
}

}  // namespace t2t
