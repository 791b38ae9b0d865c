// Attention over pages: the keys and values of a sequence lie in pages that need not be contiguous,
// and a table says which page holds which positions.
//
//   position s of a sequence lies in page table[s / page_size], at offset s % page_size
//
// The formula gathers a sequence's keys and values and is chapter 06's from there on. The kernel
// reads the pages where they lie, in stretches (the splits of Flash-Decoding, the partitions of
// vLLM) that begin at multiples of 256 positions:
//
//   a stretch p of the keys that query t sees:  attend_stretch → out[t,p] and its log-sum-exp
//   all stretches of a query:                   join_stretches, in the order of their positions
//
// A query sees a part of its last stretch, up to its own position. With a window it may also see
// only a part of its first stretch. Then attend_stretch gets only the keys that the query sees.
//
// Each sum of a query therefore has a fixed order, which depends on its position and the window
// alone: not on the other queries of the call, the size of a page, the threads or the other
// sequences. Chapter 06's kernel cuts the keys of one query into stretches of equal length, and
// computes a block of queries by matrix products, so the last bits of its results depend on how a
// sequence was cut into calls. Kwon et al. 2023, "Efficient Memory Management for Large Language
// Model Serving with PagedAttention".
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "04_causal_attention/fast/score_rule.hpp"
#include "06_gqa/fast/decode_attention.hpp"
#include "15_serving/attention/quantized_pages.hpp"
#include "tensor.hpp"

namespace t2t {

/// One layer's KV cache, in pages, for all sequences. Owns nothing. For each head, pages with
/// consecutive numbers are contiguous in memory, so that a sequence with consecutive pages is read
/// from front to back.
struct PagedLayer {
  const float* keys;    // [G, pages, page_size, D]; null if pages are quantized
  const float* values;  // [G, pages, page_size, D]; null if pages are quantized
  std::size_t pages;
  std::size_t page_size;  // positions of a page
  std::size_t G, D;
  const QuantizedPages* quantized = nullptr;  // read in their place, if given; of the same sizes

  /// `count` positions of a page, from offset `from` on: [count, D].
  ConstMatrix keys_of(std::size_t page, std::size_t g, std::size_t from, std::size_t count) const {
    return {keys + ((g * pages + page) * page_size + from) * D, count, D, D};
  }
  ConstMatrix values_of(std::size_t page, std::size_t g, std::size_t from,
                        std::size_t count) const {
    return {values + ((g * pages + page) * page_size + from) * D, count, D, D};
  }
};

/// The queries of one sequence in a call, in the order of their positions, and the sequence's
/// table. The table's pages already hold the keys and values of all positions up to the last
/// query's.
struct PagedRun {
  std::size_t first;                   // row of the first query in q and out
  std::size_t rows;                    // at least 1
  std::size_t position;                // of the first query
  std::span<const std::size_t> table;  // pages of positions 0 … position + rows − 1, or more
};

/// Positions of a stretch: stretch p has positions p·256 … p·256 + 255.
constexpr std::size_t keys_per_stretch = 256;

/// The formula, for one run, whose queries are the rows of q (`first` is not used): gathers the
/// keys and values of positions 0 … position + T − 1 in matrices [S, G·D], and calls
/// grouped_query_attention. Throws std::invalid_argument as that does, when q and the run differ in
/// rows, when the table has too few pages, and for quantized pages.
Tensor<2> paged_attention(const Tensor<2>& q,  // [T, H·D]
                          const PagedRun& run, const PagedLayer& layer, const ScoreRule& rule);

/// The kernel's memory, made once and used by all layers. It grows when a call needs more than any
/// before. For each query (a token) and group there are N·P partial outputs: one for each of the
/// group's N query heads and each of the P stretches that the query sees. The P partial outputs of
/// a head are contiguous; join_stretches makes one output of them.
struct PagedScratch {
  struct Task {
    std::size_t run, g, first, tokens;  // queries first … first + tokens − 1 of the run
    KeyRange stretches;                 // those that the task computes
    std::size_t results;  // where the N·P partial outputs begin, if the run has one query
  };
  std::vector<Task> tasks;
  std::size_t of_thread = 0;  // partial outputs of one thread, for tasks of several queries
  std::vector<float> scores;  // [threads, N·256]
  std::vector<std::vector<KeyPiece>> pieces;  // [threads]: a stretch, page by page
  std::vector<float> loaded;  // [threads, 2, 256, whole_blocks(D)]: keys, values of quantized pages
  std::vector<float> stretches;  // [partial outputs, D], by attend_stretch
  std::vector<float> log_sums;   // [partial outputs]
};

/// The kernel, for all runs of a call. The runs are listed in the order of their rows: the first
/// one begins at row 0, and each other one where the run before it ends. Under rule.mask, which
/// must be causal, a query sees the positions up to its own, or the last W of them. Each row of out
/// is the same, bit for bit, whatever the other rows are and whatever the page size. Checks
/// nothing: the caller has checked shapes and tables.
void paged_attention_rows(ConstMatrix q,  // [T, H·D]
                          std::span<const PagedRun> runs, const PagedLayer& layer,
                          const ScoreRule& rule,
                          Matrix out,  // [T, H·D]; must not overlap q
                          PagedScratch& scratch);

}  // namespace t2t
