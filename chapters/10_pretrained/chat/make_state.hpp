// How a program's tasks make the memory in which a sequence is continued: a hook for chapters that
// store keys and values in another way, as chapter 12's quantized cache does.
#pragma once

#include <functional>
#include <utility>

#include "09_language_model/fast/forward.hpp"

namespace t2t {

struct MakeState {
  /// Returns a state for sequences of up to S tokens. Empty: chapter 09's, with floats.
  std::function<ModelState(const Config& config, std::size_t S, StateOptions options)> make = {};
  double bytes_a_number = sizeof(float);  // per element of its keys and values

  ModelState operator()(const Config& config, std::size_t S, StateOptions options = {}) const {
    return make ? make(config, S, std::move(options)) : ModelState(config, S, std::move(options));
  }
};

}  // namespace t2t
