// What an experiment changes about all blocks of a model, beyond what their settings can say.
//
//   no √D          score = q·k                       instead of q·k / √D
//   ALiBi          score = q·k / √D − slope·(t − s)  for query t and key s (chapter 03)
//   not causal     each token sees its whole text    as a masked language model's do
//   no residuals   x ← part(norm(x))                 instead of x + part(norm(x))
//
// Chapter 08's block and chapter 11's kernel stay as they are: the numbers that they are given
// change. Queries times √D undo the kernel's division. Softmax ignores what all scores of a query
// have in common, so −slope·(t − s) may be slope·s, and that is a product: the last channel of each
// head holds slope·√D in q and s in k, instead of what was projected there.
#pragma once

#include "13_training/backward/training_slots.hpp"
#include "tensor.hpp"

namespace t2t {

struct BlockChanges {
  bool divided = true;    // whether scores are divided by √D
  bool causal = true;     // whether the causal mask hides later tokens
  bool residuals = true;  // whether a part's result is added to the stream, or takes its place
  Tensor<1> slopes = {};  // ALiBi's, [H]; empty: no ALiBi
};

/// The changes as slots for training. Without a change, they are empty. The attention's functions
/// throw std::invalid_argument when shapes disagree, and for slopes of another number of heads.
TrainingSlots slots_of(const BlockChanges& changes);

}  // namespace t2t
