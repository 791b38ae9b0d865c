// The attention function of a model whose sequences keep their keys and values in pages: it takes
// the place of chapter 08's Attention.
//
// Each layer has a paged KV cache. Each sequence has one table of pages for all layers: where it
// lists page 7, page 7 of every layer's cache is meant. Whoever owns the tables says which pages a
// sequence has (pages/page_pool.hpp knows which are free); this function writes new keys and values
// to them and reads the old ones there. Two sequences may share a page.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "08_block/fast/layer_tables.hpp"
#include "15_serving/attention/paged_rows.hpp"

namespace t2t {

/// The pages of a sequence, in the order of its positions.
using PageTable = std::vector<std::size_t>;

class PagedAttention {
 public:
  /// Makes `pages` pages of `page_size` positions in each layer, for sequences of up to S positions
  /// and calls with up to max_run_rows rows of a sequence. Keys and values are floats, with
  /// bits = 32, or chapter 12's values of 8 or 4 bits. Throws std::invalid_argument as LayerTables
  /// does, when sequences, pages or page_size is 0, and for other bits; std::runtime_error when
  /// there is not enough memory.
  PagedAttention(std::span<const BlockSettings> layers, std::size_t S, std::size_t max_run_rows,
                 std::size_t sequences, std::size_t pages, std::size_t page_size = 16,
                 std::size_t bits = 32);
  PagedAttention(const PagedAttention&) = delete;  // pass std::ref(it) on, not a copy

  std::vector<PageTable> tables;  // [sequences]

  std::size_t page_size() const { return page_size_; }
  std::size_t pages() const { return pages_; }
  /// Bytes of one page in all layers.
  double bytes_of_a_page() const;

  /// A page's contents in all layers: bytes_of_a_page() bytes. Throws std::invalid_argument for a
  /// page that is not below pages().
  std::vector<std::byte> copy_of(std::size_t number);
  /// Writes into a page what copy_of returned, for this page or another one. Throws
  /// std::invalid_argument as copy_of does, and for a copy of another size, before anything is
  /// written.
  void put(std::size_t number, std::span<const std::byte> copy);

  /// The attention function. Throws std::invalid_argument as LayerTables does, and when a table has
  /// too few pages for its run or names one that is not there, all before anything is written.
  void operator()(const Projected& in, Matrix heads, const Trace& trace);

 private:
  PagedLayer layer_of(std::size_t layer) const;
  void for_each_part(std::size_t number, const std::function<void(std::span<std::byte>)>& use);
  void expect_pages(const Run& run) const;
  void store(const Projected& in);
  void store_row(const Projected& in, std::size_t t, std::size_t number, std::size_t offset);

  LayerTables layers_;
  std::vector<BlockSettings> settings_;  // [L]
  std::size_t pages_, page_size_, bits_;
  std::vector<Tensor<1>> keys_, values_;   // [L] of [G · pages · page_size · D]
  std::vector<QuantizedPages> quantized_;  // [L], for fewer than 32 bits
  std::vector<PagedRun> runs_;             // of a call
  PagedScratch scratch_;
};

}  // namespace t2t
