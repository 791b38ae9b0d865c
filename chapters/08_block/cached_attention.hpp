// The block's own attention: each text's keys and values stay in caches, a layer each, and its new
// queries meet all of them.
//
//   for each text of a call, at its own position:
//     turn q and k (RoPE)      append k and v to this layer's cache      heads = kernel(q, cache)
//
// A run is a number of consecutive rows of one text; `runs` lists them in order. How queries meet a
// text's keys is a function of its own, chapter 06's unless the caller has another (chapter 11's
// flash attention). Where keys and values lie elsewhere, in pages (15) or in no cache at all (13),
// another Attention takes the whole slot.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "05_kv_cache/kv_cache.hpp"
#include "06_gqa/grouped_rows.hpp"
#include "08_block/block_rows.hpp"

namespace t2t {

/// How one text's queries meet its keys: as grouped_attention_rows, with scratch memory of its own.
using AttentionKernel =
    std::function<void(ConstMatrix q, const KeyValueHeads& heads, Mask mask, Matrix out)>;

/// The next `rows` rows of a call belong to this text.
struct Run {
  std::size_t text, rows;
};

class CachedAttention {
 public:
  /// Caches of S positions for each layer of each text; a call brings up to T_max rows of a text,
  /// on at most as many threads as are in use now. Throws std::invalid_argument as expect_settings
  /// does, for no layers, and when S, T_max or texts is 0.
  CachedAttention(std::span<const BlockSettings> layers, std::size_t S, std::size_t T_max,
                  std::size_t texts = 1, AttentionKernel kernel = {});
  CachedAttention(const BlockSettings& settings, std::size_t S, std::size_t T_max)
      : CachedAttention(std::span(&settings, 1), S, T_max) {}
  CachedAttention(const CachedAttention&) = delete;  // give std::ref(it) to a slot, not a copy

  /// Which text each row of a call belongs to, in every layer: to be set before the first layer's
  /// call, and unchanged until it is set again. Each text comes at most once, with at least one
  /// row. When it is empty, as at first, all rows are text 0's.
  std::vector<Run> runs;
  /// caches[text][layer], [G, S, D] each.
  std::vector<std::vector<KvCache>> caches;

  /// Where the text's next token stands, as layer 0 has it. Throws std::invalid_argument for a text
  /// that is not there.
  std::size_t position(std::size_t text = 0) const;
  /// Keeps the text's first positions only, in every layer. Throws as position, and as chapter 05's
  /// truncate does.
  void truncate(std::size_t position, std::size_t text = 0);

  /// The slot. Throws std::invalid_argument when q, k, v and heads are not of one call, the rows
  /// are not those of the runs, a text comes twice, brings more than T_max rows or has no room for
  /// them, the layer is not there or was made for other heads or another RoPE than the block's, or
  /// more threads are in use; and as the kernel does. The caches are then as they were.
  void operator()(const Projected& in, Matrix heads, const Trace& trace);

 private:
  template <class F>
  void for_each_run(std::size_t layer, std::size_t T, F f);
  void expect_block(const Block& block) const;
  void expect_rows(const Projected& in, ConstMatrix heads);

  std::size_t T_max_, threads_;
  std::vector<BlockSettings> layers_;  // [L]
  std::vector<RopeTable> tables_;      // [S, D/2] each; empty where nothing is turned
  std::vector<std::size_t> table_of_;  // [L]: layers of equal D and frequencies share a table
  AttentionKernel kernel_;             // keeps the scratch memory, for the widest layer
};

}  // namespace t2t
