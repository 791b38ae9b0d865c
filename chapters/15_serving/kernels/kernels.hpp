// Decode over pages on a GPU: one new token for each of B sequences, whose keys and values lie in
// pages as paged_rows.hpp says.
//
//   weights[s] = softmax over s of q[b,h]·k[s,g] / √D       g = h / (H / G)
//   out[b,h]   = Σ over s of weights[s]·v[s,g]              for all positions s of sequence b
//
// It is chapter 11's decode_split.cu with three changes. Each warp copies its next 16 keys from the
// pages in the sequence's table. A stretch (a split, in Flash-Decoding) has 256 positions and
// begins at a multiple of 256, whatever the other sequences and the number of multiprocessors. And
// a block computes several neighbouring stretches, as many as the host says. The bits of a row of
// out depend on its sequence alone: not on the other sequences, its choice of pages, the page size,
// or how many stretches a block computes.
//
// Elements are bf16, sums float32. Positions that the sequence has not reached yet are not read.
// The caller has already written the new token's key and value.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "11_flash_attention/kernels/decode/decode_scratch.hpp"
#include "cuda/device.hpp"
#include "cuda/half_types.hpp"

namespace t2t {

/// Positions of a stretch of the kernel.
constexpr int gpu_stretch = 256;

/// What a block computes, for each group of heads: neighbouring stretches of a sequence.
struct PagedBlock {
  int sequence;
  int stretch;  // its first, counted from the sequence's first
  int count;    // of its stretches
};

/// The sequences of a step: their tables, and how they are cut into stretches.
struct PagedPlan {
  int pages, page_size;      // of a layer's KV cache, and positions of a page
  std::vector<int> lengths;  // [B]: positions of each sequence
  std::vector<int>
      tables;  // the pages of all sequences, sequence by sequence, in the order of positions
  std::vector<int> table_at;  // [B]: where a sequence's pages begin in `tables`
  std::vector<int>
      stretch_at;  // [B + 1]: the first stretch of each sequence, and how many there are
  std::vector<PagedBlock> blocks;  // sequence by sequence, in the order of stretches
};

/// tables[b] lists the numbers of sequence b's pages; pages beyond those that its positions need
/// are ignored. Throws std::invalid_argument unless there is a sequence, there are as many lengths
/// as tables, sizes are at least 1, each sequence has 1 to 2,147,483,391 positions and pages for
/// them, and all numbers are below `pages`: "sequence 0: wanted pages for 5 positions, got 1
/// page(s) of 4 positions each". All sequences together may have 2^31 − 1 stretches. A block gets
/// `at_once` stretches, at least 1; a sequence's last block gets those that are left.
PagedPlan plan_sequences(std::span<const std::vector<std::size_t>> tables,
                         std::span<const int> lengths, int pages, int page_size, int at_once = 1);

/// How many stretches a block should get, for sequences of these lengths on a GPU that runs `slots`
/// blocks at once, if each stretch has `tiles` blocks: one for each group and tile of 16 heads.
int stretches_at_once(std::span<const int> lengths, int tiles, int slots);
/// How many of the kernel's blocks run on one multiprocessor of this GPU at once, for D = 64 or
/// 128.
int paged_blocks(int D);

/// A plan's lists in device memory, made once per step and used by all layers.
struct SequencesOnDevice {
  int B, stretches, blocks, pages, page_size;
  const int *lengths, *tables, *table_at, *stretch_at;  // as in PagedPlan
  const PagedBlock* of_blocks;                          // its blocks
  const int* rows = nullptr;  // [B]: a sequence's row of q and out, if it is not row b
};

/// The same with memory of its own.
struct PagedSequences {
  explicit PagedSequences(const PagedPlan& plan);
  operator SequencesOnDevice() const;

  int B, stretches, pages, page_size;
  DeviceBuffer<int> lengths, tables, table_at, stretch_at;
  DeviceBuffer<PagedBlock> blocks;
};

/// What a call reads and writes, in device memory: keys and values are the KV cache of one layer.
struct PagedCall {
  const bf16* q;       // [B, H, D], or more rows, if `rows` says which
  const bf16* keys;    // [G, pages, page_size, D]
  const bf16* values;  // [G, pages, page_size, D]
  bf16* out;           // as q; must not overlap what is read
  int H, G, D;
};

/// The device memory that attend_pages needs for so many sequences with so many stretches in all: a
/// partial output, [D], and a log-sum-exp for each stretch and head, and a counter for each
/// sequence, group and tile of 16 heads.
DecodeSizes paged_scratch(std::size_t B, std::size_t stretches, int H, int G, int D);

/// Writes all rows of out. Throws std::invalid_argument, before anything is launched, unless D is
/// 64 or 128, G divides H, H is at most 65535, B·H at most 2^31 − 1, all tensors begin at multiples
/// of 16 bytes, and scratch has room for paged_scratch: "D: wanted 64 or 128, got 96".
void attend_pages(const PagedCall& call, const SequencesOnDevice& sequences,
                  DecodeScratch& scratch);

/// The checks that attend_pages shares with other kernels, and its own.
void expect_paged_call(const PagedCall& call);
void expect_decode_call(const PagedCall& call, const SequencesOnDevice& sequences,
                        const DecodeScratch& scratch);

/// What plan_sequences shares with other plans. expect_tables checks that there is a table for each
/// of `count` things, which the message calls `name`, and that the sizes are valid. add_pages
/// checks sequence b's table and appends the pages that it uses to `to`.
void expect_tables(std::span<const std::vector<std::size_t>> tables, const char* name,
                   std::size_t count, int pages, int page_size);
void add_pages(std::size_t b, const std::vector<std::size_t>& table, long length, int pages,
               int page_size, std::vector<int>& to);

}  // namespace t2t
