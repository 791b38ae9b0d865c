// Flash attention: a block of queries meets the keys block by block, and no row of scores is ever
// whole. Per block of keys and values (k, v), for each row of scores s = q·kᵀ / √D:
//
//   m ← max(m, max s)    p = e^(s − m)    kept = e^(m before − m)
//   l ← kept·l + Σ p     o ← kept·o + p·v                                  at last: out = o / l
//
// Dao et al. 2022, "FlashAttention"; dividing once, at the end, is FlashAttention-2's (Dao 2023).
// The query heads of a group share their keys, so their queries go through one product. Scratch
// memory is the blocks' alone: it grows neither with T nor with S. Several queries; chapter 06 has
// a way of its own for one. flash_kernel hands both to the block of chapter 08.
#pragma once

#include "06_gqa/grouped_rows.hpp"
#include "08_block/cached_attention.hpp"
#include "tensor.hpp"

namespace t2t {

/// How much is taken at once. Small blocks leave less above the causal diagonal, and their scores
/// stay next to a core: 48 by 256 are 48 KiB. Where a head's keys and values fill near_bytes or
/// more, about what a core has to itself, larger blocks of queries fetch them less often.
struct FlashBlocks {
  std::size_t rows = 48;       // queries, of all heads of a group together
  std::size_t far_rows = 192;  // the same, of keys and values that come from further away
  std::size_t keys = 256;
  static constexpr std::size_t near_bytes = 1 << 20;
};

/// Scratch memory for flash_attention_rows: make it once, use it for every layer and length.
class FlashScratch {
 public:
  /// For any T and S, on as many threads as are in use now. Throws std::invalid_argument for a D or
  /// a block of 0, and as expect_groups does.
  FlashScratch(std::size_t H, std::size_t G, std::size_t D, FlashBlocks blocks = {});

  FlashBlocks blocks() const { return blocks_; }
  /// Tokens of a block of queries that meet S keys: at least 1.
  std::size_t tokens(std::size_t S) const;
  std::size_t threads() const { return floats_.shape(0); }
  std::size_t bytes() const { return floats_.size() * sizeof(float); }  // of all threads
  /// Throws std::invalid_argument unless it was made for these heads and for as many threads as
  /// are in use now, or more.
  void expect_made_for(std::size_t H, std::size_t G, std::size_t D) const;
  Row of_thread(std::size_t thread) { return row(floats_, thread); }

 private:
  std::size_t H_, G_, D_;
  FlashBlocks blocks_;
  Tensor<2> floats_;  // [threads, floats for one block]
};

/// The kernel: what chapter 06's grouped_attention_rows computes, with the same arguments, for any
/// T. Allocates nothing. Throws std::invalid_argument when out is not [T, H·D] or scratch was made
/// for other heads, and as expect_grouped does.
void flash_attention_rows(ConstMatrix q,               // [T, H·D]
                          const KeyValueHeads& heads,  // G of [S, D]
                          Mask mask,
                          Matrix out,  // [T, H·D]; must not overlap what is read
                          FlashScratch& scratch);

/// The kernel with scratch memory of its own, to be put in the place of chapter 06's (chapter 08's
/// CachedAttention, chapter 09's StateOptions): single queries, over up to S keys, still go chapter
/// 06's way.
AttentionKernel flash_kernel(std::size_t H, std::size_t G, std::size_t D, std::size_t S);

}  // namespace t2t
