// Flash attention: the same result as attention, computed without storing whole rows of scores. A
// block of queries processes the keys and values (k, v) block by block; for each of its queries,
// with scores s = q·kᵀ / √D:
//
//   m ← max(m, max s)    p = e^(s − m)    kept = e^(m before − m)
//   l ← kept·l + Σ p     o ← kept·o + p·v                    after the last block: out = o / l
//
// Dao et al. 2022, "FlashAttention". That paper divides o by l after each block of keys; dividing
// once, at the end, is from Dao 2023, "FlashAttention-2". The query heads of a group share their
// keys, so their queries share one product. Scratch memory depends on the size of the
// blocks, not on T or S. This is for several queries; for a single one chapter 06's kernel is
// faster, and flash_kernel chooses between the two.
#pragma once

#include "06_gqa/fast/grouped_rows.hpp"
#include "08_block/fast/cached_attention.hpp"
#include "tensor.hpp"

namespace t2t {

/// The sizes of the blocks. 48 queries are three vector registers of AVX-512 and six of AVX2: whole
/// tiles of register_tiles.hpp. With 64 keys, the queries, their sums and their scores take 37 KiB
/// at D = 64, most of which stays in a core's first-level cache. Under a causal mask, smaller
/// blocks compute fewer masked scores.
struct FlashBlocks {
  std::size_t queries = 48;  // over all heads of a group
  std::size_t keys = 64;
};

/// Scratch memory for flash_attention_rows: make it once, and use it for all layers and lengths.
class FlashScratch {
 public:
  /// For any T and S, on as many threads as are in use now. Throws std::invalid_argument when D or
  /// a size of a block is 0, and as expect_groups does.
  FlashScratch(std::size_t H, std::size_t G, std::size_t D, FlashBlocks blocks = {});

  FlashBlocks blocks() const { return blocks_; }
  /// Tokens whose queries make one block: at least 1.
  std::size_t tokens() const;
  std::size_t threads() const { return floats_.shape(0); }
  std::size_t bytes() const { return floats_.size() * sizeof(float); }  // of all threads
  /// Throws std::invalid_argument unless it was made for H, G and D, and for at least as many
  /// threads as are in use now.
  void expect_made_for(std::size_t H, std::size_t G, std::size_t D) const;
  Row of_thread(std::size_t thread) { return row(floats_, thread); }

 private:
  std::size_t H_, G_, D_;
  FlashBlocks blocks_;
  Tensor<2> floats_;  // [threads, floats for one block]
};

/// Computes what chapter 06's grouped_attention_rows does, from the same arguments, for any T.
/// Allocates nothing. Throws std::invalid_argument when out is not [T, H·D], as expect_made_for
/// does for the scratch memory, and as expect_grouped does.
void flash_attention_rows(ConstMatrix q,               // [T, H·D]
                          const KeyValueHeads& heads,  // G of [S, D]
                          const ScoreRule& rule,
                          Matrix out,  // [T, H·D]; must not overlap the inputs
                          FlashScratch& scratch);

/// A kernel for a model, with its own scratch memory: chapter 08's CachedAttention and chapter 09's
/// StateOptions accept it in place of chapter 06's. Several queries go to flash_attention_rows; a
/// single query, with up to S keys, goes to grouped_attention_rows. Throws std::invalid_argument as
/// FlashScratch does.
AttentionKernel flash_kernel(std::size_t H, std::size_t G, std::size_t D, std::size_t S);

}  // namespace t2t
