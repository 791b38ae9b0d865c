// Attention for training, as a function for chapter 08's block: whole sequences at once, without a
// cache.
//
// The rows of B sequences of T tokens lie one sequence after the other. Queries and keys are
// rotated, and chapter 11's flash attention reads the projections in place. Nothing outlives the
// call: the trace saves what the backward pass needs (kept_for_backward.hpp).
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "04_causal_attention/fast/score_rule.hpp"
#include "08_block/fast/layer_tables.hpp"
#include "11_flash_attention/flash_attention.hpp"
#include "13_training/attention/dropout.hpp"

namespace t2t {

/// Changes the attention of whole sequences.
struct AttentionChange {
  std::function<Mask(const BlockSettings&)> mask = {};  // empty: causal, with the settings' window
  /// Changes the queries and keys of one sequence, rotated if the model rotates them: [T, H·D], [T,
  /// G·D].
  std::function<void(const BlockSettings&, Matrix q, Matrix k)> forward = {};
  /// Converts the gradients of the changed queries and keys to those of the unchanged ones, in
  /// place; the rows may be of several sequences.
  std::function<void(const BlockSettings&, Matrix dq, Matrix dk)> backward = {};
  bool drops_weights = false;  // whether dropout also drops softmax's weights

  ScoreRule rule_of(const BlockSettings& settings) const {
    ScoreRule rule = t2t::rule_of(settings);
    if (mask) rule.mask = mask(settings);
    return rule;
  }
};

class BatchAttention {
 public:
  /// For calls of 1 to B sequences of T tokens. All layers must have the same H, G and D. Throws
  /// std::invalid_argument otherwise, when B is 0, and as LayerTables does.
  BatchAttention(std::span<const BlockSettings> layers, std::size_t B, std::size_t T,
                 AttentionChange change = {});

  /// The call itself. Tells the trace q_rotated and k_rotated also without RoPE, since the backward
  /// pass reads them, as the change left them. Throws std::invalid_argument as expect_call and the
  /// change do, and unless each run is a whole sequence.
  void operator()(const Projected& in, Matrix heads, const Trace& trace);
  /// Which weights the next calls drop, if the change says that they do. They then allocate the
  /// weights (weight_dropout.hpp).
  void leave_out(const Dropout& dropout) { dropout_ = dropout; }

  const RopeTable& table(std::size_t layer) const { return layers_.table(layer); }

 private:
  std::size_t B_, T_;
  AttentionChange change_;
  Dropout dropout_ = {};
  LayerTables layers_;
  FlashScratch scratch_;
};

}  // namespace t2t
