// Perplexity: how many tokens a model wavers between, on the mean, while it reads a text.
//
//   e^loss,   loss = mean of −ln p(ids[t + 1] | the tokens of its window up to t)
//
// The text is cut into windows side by side; the first token of each has nothing before it and is
// not scored. Shorter windows give higher figures, so two are comparable only with equal windows
// and equal tokenizers. Chapter 12 holds rounded weights against float ones by it.
#pragma once

#include <functional>
#include <span>

#include "09_language_model/forward.hpp"

namespace t2t {

struct Perplexity {
  std::size_t scored;  // tokens
  double perplexity;
};
/// after_window, if given, is told of each window's end. Throws std::invalid_argument as forward
/// does, for fewer than two ids and unless window is 2 to T_max.
Perplexity perplexity_of(std::span<const int> ids,  // [T]
                         const Model& model, std::size_t window,
                         const std::function<void(const Perplexity& so_far)>& after_window = {});

}  // namespace t2t
