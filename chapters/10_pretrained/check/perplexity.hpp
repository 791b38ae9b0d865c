// Perplexity: how well a model predicts a text. A model that gave N tokens the same probability at
// each place would have a perplexity of N.
//
//   e^loss,   loss = mean of −ln p(ids[t + 1] | the tokens of its window up to t)
//
// The text is cut into windows that do not overlap; the first token of each has no context and is
// not scored. Two perplexities can be compared only with equal windows and equal tokenizers.
// Chapter 12 uses it to compare quantized weights with floats.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "09_language_model/fast/forward.hpp"
#include "10_pretrained/chat/make_state.hpp"

namespace t2t {

struct Perplexity {
  std::size_t scored;  // tokens
  double perplexity;
};
/// after_window, if given, is called after each window. Throws std::invalid_argument as forward
/// does, for fewer than two ids and unless window is 2 to T_max.
Perplexity perplexity_of(std::span<const int> ids,  // [T]
                         const Model& model, std::size_t window,
                         const std::function<void(const Perplexity& so_far)>& after_window = {},
                         const MakeState& make_state = {});

/// The perplexity of the tokens at positions from … to − 1 of a text.
struct AtPositions {
  std::size_t from, to;
  double perplexity;
};
/// What the tokens of a bucket are predicted from.
enum class Before { whole_text, own_bucket };
/// One text, cut into buckets of so many positions. With whole_text each token is predicted from
/// all tokens before it, so that later buckets lie at positions that a model may not have been
/// trained on; with own_bucket each bucket is read alone, at positions from 0 on, and its first
/// token is not scored. after_step, if given, is told how many tokens have been read. A last bucket
/// without a token to score is left out. Throws as perplexity_of does.
std::vector<AtPositions> perplexity_by_position(
    std::span<const int> ids,  // [T]
    const Model& model, std::size_t bucket, Before before = Before::whole_text,
    const std::function<void(std::size_t read)>& after_step = {}, const MakeState& make_state = {});

}  // namespace t2t
