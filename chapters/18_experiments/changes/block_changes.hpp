// An experiment's changes to all blocks of a model, beyond their settings.
//
//   ALiBi          score = q·k / √D − slope·(t − s)  for query t and key s (chapter 03)
//   not causal     each token sees the whole sequence    as in a masked language model
//   no residuals   x ← sublayer(norm(x))                 instead of x + sublayer(norm(x))
//   no norms       x ← x + sublayer(x)                   instead of x + sublayer(norm(x))
//
// Chapter 08's block and chapter 11's kernel stay as they are; only their inputs change. Softmax
// ignores what all scores of a query have in common, so −slope·(t − s) may be slope·s, which is a
// product: the last channel of each head holds slope·√D in q and s in k, instead of its projection.
// And RMSNorm with a huge eps divides each row by the same number, √eps, which a gain of √eps
// undoes.
#pragma once

#include "09_language_model/fast/model.hpp"
#include "13_training/backward/training_functions.hpp"
#include "tensor.hpp"

namespace t2t {

struct BlockChanges {
  bool causal = true;          // whether a causal mask hides later tokens
  bool residuals = true;       // whether a sublayer's result is added to the stream, or replaces it
  bool drops_weights = false;  // whether dropout also drops attention's weights
  bool norms = true;           // whether there are norms: if not, take_norms_away changes the model
  Tensor<1> slopes = {};       // ALiBi's, [H]; empty: no ALiBi
};

/// The changes as functions for training. Without a change, they are empty. The attention's
/// functions throw std::invalid_argument when shapes disagree, and for slopes of another number of
/// heads.
TrainingFunctions functions_of(const BlockChanges& changes);

/// Makes all RMSNorms of a model, including the final one, return their input, to the last bit
/// while a row's mean square is below 2³⁶; up to rounding errors, their backward pass then does the
/// same. The gains do not change in training, because beside 2³⁰ a step of AdamW is lost in
/// rounding. Throws std::invalid_argument for LayerNorm, which would still subtract the mean, and
/// for layers with settings of their own.
void take_norms_away(Config& config, ModelWeights& weights);

}  // namespace t2t
