// The block as a model calls it: in place, for any number of tokens, of one sequence or several.
//
// x, [T, C], holds the rows of all sequences of a call, one after the other; the call's runs say
// which rows are whose (runs.hpp). Norms, projections, the feed-forward network and the sums treat
// all rows alike. Only attention reads the runs, and only attention keeps something between calls.
// It is therefore a function that the caller supplies (cached_attention.hpp has this chapter's).
// Two more such functions can replace the network (chapter 14's experts) and change what a sublayer
// adds (under tensor parallelism, chapter 10, each process holds a shard of the model, and the
// results are summed over the processes). block_rows allocates nothing.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "07_swiglu/fast/feed_forward_rows.hpp"
#include "08_block/block_weights.hpp"
#include "08_block/fast/runs.hpp"
#include "08_block/fast/trace.hpp"
#include "tensor.hpp"

namespace t2t {

/// Settings and weights that fit each other. The constructor checks them, so that block_rows need
/// not check them again in each call.
class Block {
 public:
  /// layer is the block's number in its model. The weights must outlive the Block and keep their
  /// shapes.
  /// Throws std::invalid_argument as expect_settings and expect_weights do.
  Block(const BlockSettings& settings, const BlockWeights& weights, std::size_t layer = 0);
  Block(const BlockSettings&, const BlockWeights&&, std::size_t = 0) = delete;

  const BlockSettings& settings() const { return settings_; }
  const BlockWeights& weights() const { return *weights_; }
  std::size_t layer() const { return layer_; }

 private:
  BlockSettings settings_;
  const BlockWeights* weights_;
  std::size_t layer_;
};

// [functions]
/// Queries, keys and values after the projections and, if the settings have them, the norms of the
/// heads.
struct Projected {
  const Block& block;
  Runs runs;  // whose rows these are
  Matrix q;   // [T, H·D]  before RoPE: attention rotates q and k in place
  Matrix k;   // [T, G·D]
  Matrix v;   // [T, G·D]
};
/// Writes each head's result, given q, k and v. If settings.uses_rope, it rotates q and k and
/// reports them to the trace as q_rotated and k_rotated; otherwise it reports neither. It applies
/// the causal mask, and caches what later calls need of k and v. A run may begin before the
/// position where the sequence's last run ended; what was cached from that position on no longer
/// counts.
using Attention = std::function<void(const Projected& in,
                                     Matrix heads,  // [T, H·D], attention's output, to be written
                                     const Trace& trace)>;

/// Takes the feed-forward network's place: y is what is to be added to the stream.
using FeedForward = std::function<void(const Block& block,
                                       ConstMatrix x,  // [T, C], what the network reads
                                       Matrix y,       // [T, C], to be written
                                       const Trace& trace)>;

/// Called twice per block, with Part::attention and with Part::feed_forward. `added` is what
/// attention or the feed-forward network made, and may be changed. x is the stream, to which
/// `added` is added only after this call; under NormPlace::both, `added` first goes through its
/// norm. If it sums over several processes (tensor parallelism, chapter 10) and fails in one of
/// them, it must fail in all.
using BeforeSum = std::function<void(const Block& block, Part part, ConstMatrix x,
                                     Matrix added)>;  // both [T, C]

/// Functions supplied by the caller. attention must be given, for instance a CachedAttention.
/// network is the feed-forward network; an empty one stands for chapter 07's. With an empty
/// before_sum nothing happens before the sum.
struct BlockFunctions {
  Attention attention;
  FeedForward network = {};
  BeforeSum before_sum = {};
};
// [/functions]

/// Memory for the intermediate results of a block, made once and used by all layers in all calls.
/// Its size does not depend on how many positions a cache has: the memory for scores belongs to
/// the attention.
struct BlockScratch {
  std::size_t max_rows;             // most rows in one call, of all its sequences
  Tensor<2> normed;                 // [max_rows, C]
  Tensor<2> q;                      // [max_rows, H·D]
  Tensor<2> k;                      // [max_rows, G·D]
  Tensor<2> v;                      // [max_rows, G·D]
  Tensor<2> heads;                  // [max_rows, H·D]
  Tensor<2> added;                  // [max_rows, C]
  FeedForwardScratch feed_forward;  // gate, up [max_rows, F]

  /// Large enough for a block of any of these settings. Throws std::invalid_argument as
  /// expect_settings does, when there are no settings, when two differ in C, and when max_rows
  /// is 0.
  BlockScratch(std::span<const BlockSettings> layers, std::size_t max_rows);
  BlockScratch(const BlockSettings& settings, std::size_t max_rows)
      : BlockScratch(std::span(&settings, 1), max_rows) {}
};

/// Applies the block to x in place. trace, if given, is called with the results in this order:
///
///   pre-norm    attention_norm, q, k, v, q_rotated, k_rotated, heads, attention, x_plus_attention,
///               feed_forward_norm, gate, up, hidden, feed_forward, x_plus_feed_forward
///   post-norm   q … attention, x_plus_attention, attention_norm,
///               gate … feed_forward, x_plus_feed_forward, feed_forward_norm
///
///   both        as pre-norm, with post_attention_norm after attention and post_feed_forward_norm
///               after feed_forward
///
/// In post-norm x_plus_attention and x_plus_feed_forward are the sums before their norms. The
/// attention reports q_rotated and k_rotated (under RoPE only), the network gate (if it is gated),
/// up and hidden; a function that the caller supplies may leave out its own. block_rows reports all
/// others, whichever functions are supplied: heads once the attention has written them, and
/// attention and feed_forward before before_sum may change them. Chapter 07's hidden values lie in
/// scratch.feed_forward.up.
///
/// Throws std::invalid_argument when x is not [T, C], T is 0 or above max_rows, the scratch is too
/// narrow, or a function that is needed is missing; all of this is checked before anything is
/// written. Also throws as the attention does. In both cases x is unchanged. If the network, or
/// before_sum after it, throws, attention's result has already been added to x. After a failure in
/// any of these functions, the attention's cache may already contain the new rows.
void block_rows(Matrix x,   // [T, C], the stream
                Runs runs,  // of the T rows
                const Block& block, const BlockFunctions& functions, BlockScratch& scratch,
                const Trace& trace = {});

}  // namespace t2t
