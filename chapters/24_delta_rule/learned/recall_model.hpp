// A small model for recall: an embedding, layers that mix tokens, and a head. All kinds of it have
// the same tensors, and differ in the rule of their heads alone.
//
//   x = embedding of ids       x += layer(norm(x)), twice       logits = norm(x)·W_headᵀ
//
// There is no feed-forward network, and there are no positions: the layers' convolutions tell a
// token what stood before it.
#pragma once

#include <span>
#include <vector>

#include "08_block/norm.hpp"
#include "13_training/trainer/tensor_list.hpp"
#include "24_delta_rule/learned/head_rules.hpp"
#include "24_delta_rule/learned/pairs.hpp"

namespace t2t {

struct RecallLayer {
  Mixer mixer;
  NormWeights norm;  // [C]
  DeltaLayerWeights mix;
};
struct RecallModel {
  DeltaLayerSettings settings;      // of all layers
  Tensor<2> embedding;              // [V, C]
  std::vector<RecallLayer> layers;  // [L]
  NormWeights final_norm;           // [C]
  Tensor<2> head;                   // [V, C]
};
/// Throws as expect_delta_layer does.
RecallModel draw_recall_model(const DeltaLayerSettings& settings, std::size_t V,
                              const std::vector<Mixer>& mixers, Random& random);
/// The same with zeros in all tensors, for gradients.
RecallModel zeros_like(const RecallModel& model);
/// The rows are views: the model must outlive them.
std::vector<ListedTensor> tensors_of(RecallModel& model);

/// The logits after each token that has a target, in order: [targets to be learned, V]. Throws
/// std::invalid_argument for ids outside [0, V).
Tensor<2> recall_logits(const RecallModel& model, const PairsText& text);
/// Returns Σ loss over the text's targets, in nats, and adds the gradients of scale · Σ loss.
/// Throws as recall_logits and cross_entropy_rows do.
double recall_loss(const RecallModel& model, const PairsText& text, float scale,
                   RecallModel& gradients);

}  // namespace t2t
