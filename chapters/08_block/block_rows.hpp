// The block as a model calls it: in place, for any number of tokens, of one text or of several.
//
// x holds the tokens of all texts of a call, [T, C], one text after the other. Norms, projections,
// the network and the sums treat every row alike, so only attention has to know which rows belong
// to which text: it is a slot, and what it keeps of each text is its own (cached_attention.hpp).
// Other slots exchange the network (chapter 14's experts) or look at what a part adds (chapter 16
// sums it over processes). Nothing here allocates.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "08_block/block_weights.hpp"
#include "08_block/trace.hpp"
#include "tensor.hpp"

namespace t2t {

/// Settings and weights that fit each other: checked once, when it is made, and trusted from then
/// on.
class Block {
 public:
  /// layer: which of a model's blocks it is. The weights must outlive it, and keep their shapes.
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

/// Queries, keys and values as the projections made them, and the norms of their heads if there are
/// any.
struct Projected {
  const Block& block;
  Matrix q;  // [T, H·D]  not turned yet: attention turns q and k in place
  Matrix k;  // [T, G·D]
  Matrix v;  // [T, G·D]
};
/// Writes what each head finds, given q, k and v: turns q and k where settings.uses_rope says so
/// (and tells them to the trace), masks what comes after a token, and keeps of k and v what later
/// calls will want. Whatever it throws, what it keeps of the texts is then as it was.
using Attention = std::function<void(const Projected& in,
                                     Matrix heads,  // [T, H·D], to be written
                                     const Trace& trace)>;

/// Stands in for the feed-forward network: y is what it would add to the stream.
using Network = std::function<void(const Block& block,
                                   ConstMatrix x,  // [T, C], what it reads there
                                   Matrix y,       // [T, C], to be written
                                   const Trace& trace)>;

/// Sees what a part (Part::attention or Part::feed_forward) made, before it is added to the stream,
/// and may change it.
using BeforeSum = std::function<void(const Block& block, Part part, Matrix added)>;  // [T, C]

/// The parts that can be replaced. attention is required, since it keeps the texts' keys and
/// values: CachedAttention is this chapter's. An empty network means chapter 07's, an empty
/// before_sum a bare sum.
struct BlockSlots {
  Attention attention;
  Network network = {};
  BeforeSum before_sum = {};
};

/// Room for what a block makes on its way: made once, used by every layer at every step.
struct BlockScratch {
  std::size_t T_max;                // rows of a call, at most
  Tensor<2> normed;                 // [T_max, C]
  Tensor<2> q;                      // [T_max, H·D]
  Tensor<2> k;                      // [T_max, G·D]
  Tensor<2> v;                      // [T_max, G·D]
  Tensor<2> heads;                  // [T_max, H·D]
  Tensor<2> added;                  // [T_max, C]
  FeedForwardScratch feed_forward;  // gate, up [T_max, F]

  /// For blocks of these settings: where they differ, for the widest. Throws std::invalid_argument
  /// as expect_settings does, for no settings, for another C, and when T_max is 0.
  BlockScratch(std::span<const BlockSettings> layers, std::size_t T_max);
  BlockScratch(const BlockSettings& settings, std::size_t T_max)
      : BlockScratch(std::span(&settings, 1), T_max) {}
};

/// The block, in place. trace, if given, sees every intermediate, as Part lists them; in post-norm
/// the norms come after their sums. q_turned and k_turned are told by the attention, gate, up and
/// hidden by the network: a slot may leave its own out. What a part made is told before before_sum
/// sees it. Throws std::invalid_argument, with x and the texts as they were, when x is not [T, C],
/// T is 0 or above T_max, the scratch is too narrow, a slot that is needed is empty, and as the
/// attention does. What another slot throws, or the trace outside the attention, leaves the new
/// tokens with the attention.
void block_rows(Matrix x,  // [T, C], the residual stream
                const Block& block, const BlockSlots& slots, BlockScratch& scratch,
                const Trace& trace = {});

}  // namespace t2t
