// A model's memory for sequences with a quantized cache, in 8 or 4 bits: chapter 09's ModelState
// with quantized_attention.hpp's attention.
//
// forward, generate and every other user of a ModelState work with it as with any other.
#pragma once

#include "09_language_model/fast/forward.hpp"

namespace t2t {

/// Bytes of the rounded caches of all layers, for one sequence of S tokens.
double quantized_cache_bytes(const Config& config, std::size_t S, std::size_t bits);

/// A state whose attention stores keys and values in 8 or 4 bits. Throws as ModelState's
/// constructor does, and unless bits is 4 or 8.
ModelState quantized_state(const Config& config, std::size_t S, std::size_t bits,
                           StateOptions options = {});

}  // namespace t2t
