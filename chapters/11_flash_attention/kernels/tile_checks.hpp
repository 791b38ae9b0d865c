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

/// How many tiles of `queries` queries T queries fill. Throws std::invalid_argument when a grid
/// cannot have a block for each tile of B·H heads.
int query_tiles(int T, int heads, int queries);

template <class Number>
void expect_tiles(const AttentionCall<Number>& call) {
  expect_call(call);
  expect_tile_width(call.D);
  expect_rows("q", call.q, call.q_strides, sizeof(Number));
  expect_rows("k", call.k, call.k_strides, sizeof(Number));
  expect_rows("v", call.v, call.v_strides, sizeof(Number));
  expect_rows("out", call.out, call.out_strides, sizeof(Number));
}

template <class Number>
int query_tiles(const AttentionCall<Number>& call, int queries) {
  return query_tiles(call.T, call.B * call.H, queries);
}

}  // namespace t2t
