// The ladder of attention kernels for a GPU. Each rung is one file with one new idea, and computes
// what attention_call.hpp says.
//
//   rung 0  04_causal_attention/kernels/attention_naive.cu   float32  the formula, scores in memory
//   rung 1  fused_online_softmax.cu                  float32  no scores in memory, a warp per query
//   rung 2  shared_tiles.cu                          float32  64 queries share tiles of keys
//   rung 3  tensor_cores.cu                          bf16     products on the tensor cores
//   rung 4  swizzle_async.cu                         bf16     copies in flight, no bank conflicts
//   rung 5  decode/decode_split.cu                   bf16     few queries, keys split over the GPU
//   rung 6  hopper/bulk_copies.cu                    bf16     a tile is one instruction (TMA)
//   rung 7  hopper/warpgroup_products.cu             bf16     four warps multiply together (wgmma)
//   rung 8  hopper/warp_specialized.cu               bf16     a producer copies, consumers multiply
//   rung 9  hopper/overlapped.cu                     bf16     softmax while products run, turns
//   rung 10 hopper/persistent.cu                     bf16     a block takes tile after tile
//
// Rung 6 needs compute capability 9.0 or newer (Hopper), rungs 7 to 10 need 9.0. best_rung.hpp
// chooses one for a prompt.
//
// ./learn gpu times these kernels, and page 11 shows what it recorded on an H100. No other GPU has
// run them yet, and no GPU rungs 6 to 10.
//
// Sums and softmax are float32 in all rungs.
//
// A NaN in a masked value may reach queries of its tile, since 0·NaN is NaN. Rows past S or T, and
// elements between rows, are never read.
//
// Each function that takes a call throws std::invalid_argument as expect_tiles does.
#pragma once

#include "11_flash_attention/kernels/decode/decode_scratch.hpp"
#include "11_flash_attention/kernels/tile_checks.hpp"
#include "cuda/tensor_core.hpp"

namespace t2t {

void attend_fused(const AttentionCall<float>& call);
void attend_shared_tiles(const AttentionCall<float>& call);
void attend_tensor_cores(const AttentionCall<bf16>& call);

/// How many heads' keys and values together take at most 16 MiB, so that they stay in L2 while all
/// of these heads' queries read them. At least 1.
int heads_of_section(const AttentionCall<bf16>& call);
/// Rung 4 processes the heads in sections of so many, or with 0 of heads_of_section(call). Also
/// throws std::invalid_argument when section is below 0.
void attend_swizzle_async(const AttentionCall<bf16>& call, int section = 0);

/// Rung 6. Also throws std::runtime_error on a GPU without TMA: "bulk_copies: wanted compute
/// capability 9.0 or newer, got 8.0".
void attend_bulk_copies(const AttentionCall<bf16>& call);

/// Rungs 7 to 10. Also throw std::runtime_error on other GPUs than Hopper: "overlapped: wanted
/// compute capability 9.0, got 8.0".
void attend_warpgroup_products(const AttentionCall<bf16>& call);
void attend_warp_specialized(const AttentionCall<bf16>& call);
void attend_overlapped(const AttentionCall<bf16>& call);
/// With so many blocks, or with 0 as many as the GPU has multiprocessors. Also throws
/// std::invalid_argument when blocks is below 0.
void attend_persistent(const AttentionCall<bf16>& call, int blocks = 0);

/// How many of rung 5's blocks run on one multiprocessor of this GPU at once, for D = 64 or 128.
int decode_blocks(int D);
/// P, the number of stretches into which to cut S keys, for `tiles` tiles of 16 query rows (B·G
/// when T·H/G is at most 16) on a GPU on which `slots` blocks run at once: decode_blocks times the
/// number of multiprocessors.
int decode_splits(int tiles, int S, int slots);

/// The device memory that attend_decode needs for P = splits stretches: for each stretch a mean and
/// a log-sum of each row of out, and a counter for each group of heads and tile of 16 query rows.
DecodeSizes decode_scratch(const AttentionCall<bf16>& call, int splits);

/// Rung 5, fastest for T·H/G of 16 or less. With more than one stretch, scratch must have room for
/// decode_scratch(call, splits). Also throws std::invalid_argument when it has not, when T·H/G is
/// above 1,048,560, or splits is not 1 to 65535: "splits: wanted 1 to 65535, got 0".
///
/// If start is given, it is in device memory and is read there when the kernel runs, in place of
/// call.start; the last query is then the last key, S = *start + T, and call.S is not used. The
/// call can thus be recorded (cuda/graph.hpp) while the cache grows.
void attend_decode(const AttentionCall<bf16>& call, int splits, DecodeScratch& scratch,
                   const int* start = nullptr);

}  // namespace t2t
