// A task for an encoder: from which of several texts do these bytes come? Chapter 08's blocks
// without the causal mask read a window, and the head predicts its class at the window's last
// position, where a special token stands. With the mask that position also sees the whole window,
// but the bytes before it see less of each other.
//
// Devlin et al. 2018, "BERT: Pre-training of Deep Bidirectional Transformers", also classifies at a
// special position, the first, which would see nothing under a causal mask.
#pragma once

#include <span>
#include <vector>

#include "13_training/backward/model_backward.hpp"
#include "random.hpp"

namespace t2t {

/// Marks where the class is predicted. No text has this byte.
constexpr int class_token = 0;

/// Fills the batch with windows of T − 1 tokens from texts drawn at random, all equally likely,
/// with a class_token after each. Its target is the number of the text, from 0 on; nothing else is
/// learned. Throws std::invalid_argument when there is no text, and for a text of fewer than T − 1
/// tokens.
void draw_windows(Batch& batch, std::span<const std::vector<int>> texts, Random& random);

/// The same for one window of T − 1 tokens, for measuring: B is 1. Throws std::invalid_argument for
/// another length.
void set_window(Batch& batch, std::span<const int> window, int number);

/// The share of windows whose own class gets the highest score. `passes` must be for one sequence
/// of T tokens. Reads up to `most` windows of each text, one after the other. Throws
/// std::invalid_argument when no text has a whole window.
double share_recognized(const Model& model, Gradients& passes, std::size_t T,
                        std::span<const std::vector<int>> texts, std::size_t most);

/// The same for a rival that counts: the text whose n-gram model (ngram.hpp), made of `train`,
/// gives the window the highest probability. Throws as share_recognized and NgramModel do.
double share_recognized_by_counts(std::span<const std::vector<int>> train, std::size_t T,
                                  std::span<const std::vector<int>> texts, std::size_t most);

}  // namespace t2t
