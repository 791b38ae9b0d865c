// What an experiment changes about all blocks of a model, beyond what their settings can say.
//
//   ALiBi          score = q·k / √D − slope·(t − s)  for query t and key s (chapter 03)
//   not causal     each token sees its whole text    as a masked language model's do
//   no residuals   x ← part(norm(x))                 instead of x + part(norm(x))
//   no norms       x ← x + part(x)                   instead of x + part(norm(x))
//
// Chapter 08's block and chapter 11's kernel stay as they are: the numbers that they are given
// change. Softmax ignores what all scores of a query have in common, so −slope·(t − s) may be
// slope·s, and that is a product: the last channel of each head holds slope·√D in q and s in k,
// instead of what was projected there. And RMSNorm with a huge eps divides each row by the same
// number, √eps, which a gain of √eps undoes.
#pragma once

#include "09_language_model/fast/model.hpp"
#include "13_training/backward/training_slots.hpp"
#include "tensor.hpp"

namespace t2t {

struct BlockChanges {
  bool causal = true;          // whether the causal mask hides later tokens
  bool residuals = true;       // whether a part's result is added to the stream, or takes its place
  bool drops_weights = false;  // whether dropout leaves out attention's weights, too
  bool norms = true;           // whether there are norms: if not, take_norms_away changes the model
  Tensor<1> slopes = {};       // ALiBi's, [H]; empty: no ALiBi
};

/// The changes as slots for training. Without a change, they are empty. The attention's functions
/// throw std::invalid_argument when shapes disagree, and for slopes of another number of heads.
TrainingSlots slots_of(const BlockChanges& changes);

/// Makes all RMSNorms of a model, the final one too, give back what they read, to the last bit
/// while a row's mean square is below 2³⁶; to rounding errors, their backward pass then does the
/// same. The gains stay as they are in training: next to 2³⁰ a step of AdamW is lost in rounding.
/// Throws std::invalid_argument for LayerNorm, which would still subtract the mean, and for layers
/// with settings of their own.
void take_norms_away(Config& config, ModelWeights& weights);

}  // namespace t2t
