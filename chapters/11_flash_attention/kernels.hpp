// The ladder of attention kernels, one idea a file; each rung computes what attention_call.hpp
// says.
//
//   rung 0  04_causal_attention/attention_naive.cu   float32  the formula, scores in memory
//   rung 1  fused_online_softmax.cu                  float32  no scores in memory, a warp a query
//   rung 2  shared_tiles.cu                          float32  shared memory, tiles for 64 queries
//   rung 3  tensor_cores.cu                          bf16     products on the tensor cores
//   rung 4  swizzle_async.cu                         bf16     copies in flight, no bank conflicts
//   rung 5  decode_split.cu                          bf16     few queries, keys split over the card
//
// Sums and softmax are float32 in all of them. What Hopper has of its own (wgmma, the bulk copy
// engine, warps with roles) is not used yet.
//
// A NaN in a value that the mask hides may still reach queries of its tile: 0·NaN is NaN. What lies
// past S, past T or between rows is never read.
//
// Every function throws std::invalid_argument as expect_call does. Chapters 12 and 15 build on
// rung 5.
#pragma once

#include "04_causal_attention/attention_call.hpp"
#include "cuda/tensor_core.hpp"

namespace t2t {

void attend_fused(const AttentionCall<float>& call);
void attend_shared_tiles(const AttentionCall<float>& call);
void attend_tensor_cores(const AttentionCall<bf16>& call);
void attend_swizzle_async(const AttentionCall<bf16>& call);

/// P, how many stretches a card of so many multiprocessors should cut S keys into for `tiles` tiles
/// of 16 query rows (B·G when T·H/G is at most 16).
int decode_splits(int tiles, int S, int multiprocessors);

/// Floats of device memory that attend_decode needs for P stretches: for each a mean and a log-sum
/// of every row of out.
std::size_t decode_scratch(const AttentionCall<bf16>& call, int splits);

/// Made for T·H/G of 16 or less. scratch must hold decode_scratch(call, splits) floats of device
/// memory. Also throws when T·H/G is above 1,048,560 or splits not 1 … 65535: "splits: wanted 1 to
/// 65535, got 0".
void attend_decode(const AttentionCall<bf16>& call, int splits, float* scratch);

}  // namespace t2t
