// The arguments of every attention kernel for a GPU: tensors in device memory, their sizes, the
// mask.
//
//   weights[s] = softmax over s of q[b,t,h]·k[b,s,g] / √D        g = h / (H / G)
//   out[b,t,h] = Σ over s of weights[s]·v[b,s,g]
//
// where s runs over the keys that query t sees.
// Rows are read where the caller keeps them: q, k and v may lie inside one buffer [B, T, (H +
// 2·G)·D], or in a cache that has room for more keys. Used by attention_naive.cu and by chapter 11.
#pragma once

#include "cuda/kernel.hpp"

namespace t2t {

/// How many elements lie from one batch, token or head to the next. The D elements of a row are
/// contiguous.
struct Strides {
  long batch, token, head;
};

/// Strides of a tensor [B, T, heads, D] without gaps.
Strides row_major(int T, int heads, int D);

template <class Number>
struct AttentionCall {
  const Number* q;  // [B, T, H, D]
  const Number* k;  // [B, S, G, D]
  const Number* v;  // [B, S, G, D]
  Number* out;      // [B, T, H, D]; must not overlap what is read
  Strides q_strides, k_strides, v_strides, out_strides;
  int B, T, S, H, G, D;
  bool causal;
  int start;  // causal: query t is at position start + t, and sees no key after it
};

/// Row of token t and head h in batch b.
template <class Number>
__device__ __forceinline__ Number* row_of(Number* tensor, const Strides& strides, int b, int t,
                                          int h) {
  return tensor + b * strides.batch + t * strides.token + h * strides.head;
}

/// The number n of keys that query t sees, keys 0 … n − 1. It is at least 1, so that no row of
/// scores is all −infinity.
template <class Number>
__device__ __forceinline__ int keys_seen(const AttentionCall<Number>& call, int t) {
  return call.causal && t < call.S - call.start ? call.start + t + 1 : call.S;
}

/// Throw std::invalid_argument, with what was wanted and what was got, unless sizes are at least 1,
/// G divides H, B·H is at most 65535, start is at least 0, and the memory is there.
void expect_sizes(int B, int T, int S, int H, int G, int D, int start);
void expect_device(const char* name, const void* memory);

template <class Number>
void expect_call(const AttentionCall<Number>& call) {
  expect_sizes(call.B, call.T, call.S, call.H, call.G, call.D, call.start);
  expect_device("q", call.q);
  expect_device("k", call.k);
  expect_device("v", call.v);
  expect_device("out", call.out);
}

}  // namespace t2t
