// How a program's tasks make the memory in which a text is continued: a hook for chapters that keep
// keys and values in another way (chapter 12: in few bits).
#pragma once

#include <functional>
#include <utility>

#include "09_language_model/fast/forward.hpp"

namespace t2t {

struct MakeState {
  /// Returns a state for texts of up to S tokens. Empty: chapter 09's, with floats.
  std::function<ModelState(const Config& config, std::size_t S, StateOptions options)> make = {};
  double bytes_a_number = sizeof(float);  // of a key or a value in its caches

  ModelState operator()(const Config& config, std::size_t S, StateOptions options = {}) const {
    return make ? make(config, S, std::move(options)) : ModelState(config, S, std::move(options));
  }
};

}  // namespace t2t
