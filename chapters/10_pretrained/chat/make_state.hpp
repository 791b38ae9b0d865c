// How a program's tasks make the memory in which a sequence is continued: a hook for chapters that
// store keys and values in another way, as chapter 12's quantized cache does, or elsewhere, as
// chapter 11 does on a GPU.
#pragma once

#include <functional>
#include <utility>

#include "09_language_model/fast/forward.hpp"

namespace t2t {

struct MakeState {
  /// Returns a state for the model's sequences of up to S tokens. Empty: chapter 09's, with floats.
  std::function<ModelState(const Model& model, std::size_t S, StateOptions options)> make = {};
  double bytes_per_element = sizeof(float);  // per element of its keys and values
  bool on_cpu = true;  // whether this machine's own limits are those of its speed

  ModelState operator()(const Model& model, std::size_t S, StateOptions options = {}) const {
    return make ? make(model, S, std::move(options))
                : ModelState(model.config(), S, std::move(options));
  }
};

}  // namespace t2t
