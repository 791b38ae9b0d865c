// Prompts over pages on a GPU: several new tokens per sequence. The sequences' keys and values lie
// in pages as paged_rows.hpp says.
//
//   weights[t,s] = softmax over s of q[t,h]·k[s,g] / √D      for all s up to t's own position
//   out[t,h]     = Σ over s of weights[t,s]·v[s,g]           g = h / (H / G)
//
// It is chapter 11's fourth rung, attention with asynchronous copies (swizzle_async.cu), but tiles
// of keys are copied from pages. The host lists the tiles of queries of all sequences: a tile has
// up to 128 consecutive rows of one sequence. A row's keys are taken in the order of their
// positions, in tiles that begin at multiples of 64 (D = 64) or 32 (D = 128). The bits of a row of
// out therefore depend on its sequence alone: not on the other sequences, on how its prompt was cut
// into chunks, its choice of pages, or the page size. They differ from those of decode_pages.cu,
// which adds up the same terms in another order.
//
// The caller has already written the keys and values of all rows. Positions after a tile's last row
// are not read.
#pragma once

#include <span>
#include <vector>

#include "15_serving/kernels/kernels.hpp"

namespace t2t {

/// Rows of a tile of queries.
constexpr int prompt_tile_rows = 128;

/// The new tokens of one sequence: consecutive rows of q and out, at consecutive positions.
struct PromptRows {
  int row;       // the first, in q and out
  int rows;      // their number
  int position;  // of the first, in the sequence
};

/// The queries of one thread block.
struct PromptTile {
  int row, rows, position;  // as in PromptRows; at most prompt_tile_rows rows
  int table_at;             // where the sequence's pages begin in `tables`
};

/// The prompts of a step, cut into tiles: those that see the most keys come first, since the thread
/// blocks that begin last should end soon.
struct PromptPlan {
  int pages, page_size;     // of a layer's KV cache, and positions of a page
  std::vector<int> tables;  // the pages of all sequences, as in PagedPlan
  std::vector<PromptTile> tiles;
};

/// tables[b] lists the numbers of the pages of prompts[b]'s sequence. Throws std::invalid_argument
/// as plan_sequences does, where a sequence has position + rows positions, and unless rows is at
/// least 1, and row and position at least 0.
PromptPlan plan_prompts(std::span<const std::vector<std::size_t>> tables,
                        std::span<const PromptRows> prompts, int pages, int page_size);

/// A plan's lists in device memory.
struct PromptsOnDevice {
  int count, pages, page_size;
  const PromptTile* tiles;  // [count]
  const int* tables;
};

/// The same with memory of its own.
struct PagedPrompts {
  explicit PagedPrompts(const PromptPlan& plan);
  operator PromptsOnDevice() const;

  int pages, page_size;
  DeviceBuffer<PromptTile> tiles;
  DeviceBuffer<int> tables;
};

/// Writes the prompts' rows of out. In call, q and out have all rows, [T, H, D]. Throws
/// std::invalid_argument as attend_pages does, before anything is launched.
void attend_prompts(const PagedCall& call, const PromptsOnDevice& prompts);

}  // namespace t2t
